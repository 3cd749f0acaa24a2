"""The settings of our statements, which stay out of the session that a user gave us.

Small statements are interpreted, large ones compiled, and a check runs compiled.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import uuid
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.connect.session import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, subscribe
from dagster_streamtables.runtime.compute.row_files import RowFiles
from dagster_streamtables.runtime.compute.spark_relations import views_of
from dagster_streamtables.runtime.spark import session
from dagster_streamtables.runtime.spark.local_server import ensure_server, key_of
from dagster_streamtables.runtime.spark.session import FEW, open_session, session_with, to_local
from dagster_streamtables.runtime.spark.settings import COMMIT_SETTINGS
from dagster_streamtables.runtime.spark.spark_commits import Commit, CommitMark

pytestmark = pytest.mark.spark

MARK = CommitMark("ours", 7, "{}")


@pytest.fixture
def given(spark: Any) -> Iterator[Any]:
    """A user's session on the server."""
    key = key_of(ensure_server())
    assert key
    channel: Any = to_local(key.port, key.token, "user_id=somebody")
    theirs: Any = SparkSession.builder.channelBuilder(channel).create()
    yield theirs
    theirs.client.release_session()
    theirs.client.close()


def make(spark: Any, place: Path) -> str:
    spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT) USING delta").collect()
    return str(place)


def transactions(place: str) -> list[Any]:
    commits = sorted((Path(place) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for each in commits for line in each.read_text().splitlines()]
    return [each["txn"] for each in actions if "txn" in each]


def test_a_users_insert_takes_no_transaction_of_ours(given: Any, tmp_path: Path) -> None:
    theirs, ours = make(given, tmp_path / "theirs"), make(given, tmp_path / "ours")
    given.range(3).createOrReplaceTempView("rows_of_the_user")
    with Commit(given, ours, MARK, 1000).session() as marked:
        for _ in range(2):
            given.sql(f"INSERT INTO delta.`{theirs}` VALUES (1)").collect()
        marked.sql(
            f"MERGE INTO delta.`{ours}` AS t USING rows_of_the_user AS s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *"
        ).collect()
    assert given.sql(f"SELECT * FROM delta.`{theirs}`").count() == 2
    assert given.sql(f"SELECT * FROM delta.`{ours}`").count() == 3
    assert transactions(theirs) == []
    [transaction] = transactions(ours)
    assert (transaction["appId"], transaction["version"]) == ("ours", 7)


def test_a_session_of_ours_has_its_settings_again(spark: Any, tmp_path: Path) -> None:
    with Commit(spark, str(tmp_path), MARK, 1000).session() as marked:
        assert marked is spark
        assert spark.conf.get(COMMIT_SETTINGS[0]) == "ours"
    assert [spark.conf.get(name, None) for name in COMMIT_SETTINGS] == [None] * 3


def test_a_user_inserts_while_a_table_is_refreshed(given: Any, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"), spark=given, driver_rows=0)
    theirs, orders = make(given, tmp_path / "theirs"), make(given, Path(lake.location("orders")))
    table = StreamTable("totals", "SELECT id, COUNT(*) AS n FROM orders GROUP BY id")
    given.sql(f"INSERT INTO delta.`{orders}` VALUES (1), (2)").collect()
    lake.refresh(table)
    ended = threading.Event()
    inserted: list[int] = []

    def insert() -> None:
        while not ended.wait(0.3):
            given.sql(f"INSERT INTO delta.`{theirs}` VALUES (1)").collect()
            inserted.append(1)

    user = threading.Thread(target=insert)
    user.start()
    given.sql(f"INSERT INTO delta.`{orders}` VALUES (2)").collect()
    assert lake.refresh(table).writer == "spark"
    ended.set()
    user.join()
    assert lake.check(table).equal
    assert transactions(theirs) == []
    assert given.sql(f"SELECT * FROM delta.`{theirs}`").count() == len(inserted) > 0


SALES = StreamTable("totals", "SELECT k, SUM(v) AS v FROM sales GROUP BY k", mode="DIFFERENTIAL")


def sales(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table({"k": numbers % 7, "v": numbers})


def is_interpreted(lake: Lake) -> bool:
    spark = lake.access.session(SALES.name).spark
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    return [spark.conf.get(name) for name in names] == ["false", "NO_CODEGEN"]


def test_what_reads_few_rows_is_interpreted_and_its_check_is_not(tmp_path: Path) -> None:
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, sales(100))

    lake.refresh(SALES)
    assert is_interpreted(lake)
    assert lake.checks.equality(SALES).equal
    assert not is_interpreted(lake)

    write_deltalake(place, sales(10), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert is_interpreted(lake)


@pytest.mark.long
def test_what_reads_many_rows_is_compiled_and_a_small_change_of_them_is_not(tmp_path: Path) -> None:
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, sales(FEW * 7 // 2))
    lake.refresh(SALES)
    assert not is_interpreted(lake)

    write_deltalake(place, sales(10), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert is_interpreted(lake)

    write_deltalake(place, sales(FEW // 4), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert not is_interpreted(lake)
    assert lake.checks.equality(SALES).equal


GUARDED = """SELECT k, CAST(COUNT(*) AS TINYINT) * CAST(60 AS TINYINT) AS scaled FROM sales
GROUP BY k HAVING COUNT(*) < 3"""


def test_what_a_condition_guards_is_computed_for_no_other_row(tmp_path: Path) -> None:
    """180 is too large for a TINYINT, and an interpreted statement computes it before HAVING."""
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, pa.table({"k": [1, 1, 1, 2], "v": [1, 1, 1, 1]}))
    table = StreamTable("scaled", GUARDED, mode="DIFFERENTIAL")
    followed = subscribe(lake, GUARDED, clock="version")

    assert lake.refresh(table).inserted == 1
    assert followed.fetch(None, timeout=0).select(["_diff", "k", "scaled"]).to_pylist() == [
        {"_diff": 1, "k": 2, "scaled": 60}
    ]
    write_deltalake(place, pa.table({"k": [2, 3], "v": [1, 1]}), mode="append")
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    assert lake.checks.equality(table).equal
    write_deltalake(place, pa.table({"k": [2], "v": [1]}), mode="append")
    found = followed.fetch(None, timeout=0).select(["_timestamp", "_diff", "k", "scaled"])
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
        (1, -1, 2, 60), (1, 1, 2, 120), (1, 1, 3, 60), (2, -1, 2, 120)
    ]  # fmt: skip


def test_a_session_of_the_user_keeps_its_confs(given: Any, tmp_path: Path) -> None:
    # It is on the local server, but nothing says so: it could be anybody's.
    lake = Lake(tmp_path, spark=given)
    write_deltalake(str(tmp_path / "public" / "sales"), sales(100))
    lake.refresh(SALES)
    assert not is_interpreted(lake)


LEAVE_INTERPRETED = """
from dagster_streamtables.runtime.spark.session import choose_codegen, open_session
choose_codegen(open_session(session_id="{session}"), 1)
"""


def test_a_session_that_another_process_left_interpreted_is_compiled(spark: Any) -> None:
    """The next process knows nothing of it: it would run large statements interpreted."""
    identity = str(uuid.uuid4())
    script = LEAVE_INTERPRETED.format(session=identity)
    subprocess.run([sys.executable, "-c", script], check=True)
    left = open_session(session_id=identity)
    assert left.conf.get("spark.sql.codegen.wholeStage") == "true"
    assert left.conf.get("spark.sql.codegen.factoryMode") == "FALLBACK"


def test_nothing_holds_a_session_whose_server_ended(spark: Any, monkeypatch: Any) -> None:
    """A worker runs for weeks, and the local server ends whenever it is idle."""
    identity = str(uuid.uuid4())
    ended = open_session(session_id=identity)
    views_of(ended, "a table", RowFiles())
    with session_with(ended, {}):
        pass
    kept = weakref.ref(ended)
    [key] = [key for key in session._sessions if key[1] == identity]
    del session._sessions[key]
    monkeypatch.setattr(session, "_sessions", {key: ended})
    monkeypatch.setattr(session, "_listens", lambda address: False)
    session._forget_ended_servers("sc://127.0.0.1:1")
    del ended
    gc.collect()
    assert kept() is None
