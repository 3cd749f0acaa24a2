"""The settings of our statements stay out of the session that a user gave us."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.runtime.spark.commits import Commit, CommitMark
from dagster_streamtables.runtime.spark.server import ensure_server, key_of
from dagster_streamtables.runtime.spark.session import to_local
from dagster_streamtables.runtime.spark.settings import COMMIT_SETTINGS

MARK = CommitMark("ours", 7, "{}")


@pytest.fixture
def given(spark: Any) -> Iterator[Any]:
    """A user's session on the server."""
    key = key_of(ensure_server())
    assert key
    channel: Any = to_local(key.port, key.token, "user_id=somebody")
    session: Any = SparkSession.builder.channelBuilder(channel).create()
    yield session
    session.client.release_session()
    session.client.close()


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
