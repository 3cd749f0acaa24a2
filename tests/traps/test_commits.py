"""Traps of the commit: crashes, rivals, and writers that come while a refresh is under way."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.refresh import completion, refresh as refreshing
from runtime.delta import on_spark, write
from runtime.orders import LARGE, NOWHERE, TOTALS, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import writers

pytestmark = pytest.mark.long

tables = pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])


class Killed(BaseException):
    """What no handler of the product may take for an error of its own."""


def then(do: Callable[..., Any], after: Callable[[], object]) -> Callable[..., Any]:
    """The same function, with something that happens right after it."""

    def both(*args: Any, **more: Any) -> Any:
        done = do(*args, **more)
        after()
        return done

    return both


def actions(lake: Lake, table: StreamTable) -> dict[str, dict[str, Any]]:
    """The actions of a stream table's last commit, one of each kind."""
    name = f"_delta_log/{lake.version(table.name):020d}.json"
    lines = (Path(lake.location(table.name)) / name).read_text().splitlines()
    return {kind: body for line in lines for kind, body in json.loads(line).items()}


@writers
def test_p01_rows_frontier_and_transaction_are_one_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:

    def die() -> None:
        raise Killed

    each_refreshed(lake, TOTALS, LARGE)
    before = {table: lake.version(table.name) for table in (TOTALS, LARGE)}
    write(lake, "orders", orders(20, 21))
    for table, version in before.items():
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(completion, "commit_once", then(completion.commit_once, die))
            lake.refresh(table)
        commit = actions(lake, table)
        state = json.loads(commit["commitInfo"]["userMetadata"])
        assert state["sources"]["orders"]["version"] == 1
        assert commit["txn"]["version"] == state["sequence"] == 2
        assert "add" in commit

        again = Lake(lake.root, spark=NOWHERE).refresh(table)

        assert (again.action, again.version) == (Action.NO_DATA, version + 1)
        assert lake.check(table).equal


@writers
@tables
@pytest.mark.parametrize("deleting", [True, False], ids=["deleting", "only appending"])
def test_p02_of_two_refreshes_at_once_one_commits(
    deleting: bool, table: StreamTable, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Delta would let two appends pass, one after the other."""
    refreshed(lake, table)
    version = lake.version(table.name)
    write(lake, "orders", orders(20))
    if deleting:
        source(lake).delete("id = 3")

    assert two_at_once(lake, table, "change", monkeypatch) == ["ConflictingCommit", "Refresh"]
    assert lake.version(table.name) == version + 1
    assert refreshed(lake, table).action is Action.NO_DATA


def two_at_once(
    lake: Lake, table: StreamTable, step: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """How two refreshes end that both have computed before either commits."""
    both = threading.Barrier(2, timeout=120)

    def refresh(_: int) -> str:
        try:
            return type(lake.refresh(table)).__name__
        except ConflictingCommit as error:
            return type(error).__name__

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(differential, step, then(getattr(differential, step), both.wait))
        return sorted(pool.map(refresh, range(2)))


def test_p27_a_commit_that_was_prepared_before_the_refresh_is_seen_by_the_next(lake: Lake) -> None:
    late, deleting = source(lake), source(lake)
    refreshed(lake, LARGE)
    write(lake, "orders", orders(20))
    refreshed(lake, LARGE)

    write_deltalake(late, orders(21), mode="append")
    deleting.delete("id = 3")
    done = refreshed(lake, LARGE, inserted=1, deleted=1)

    assert (done.windows["orders"].before, done.windows["orders"].after) == (1, 3)
    assert lake.refresh(LARGE).action is Action.NO_DATA


def test_p28_all_sources_are_read_at_the_versions_that_were_pinned(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, "names", pa.table({"customer": [0, 1, 2], "name": ["a", "b", "c"]}))
    table = maintained(
        "mart.named",
        "SELECT o.id, n.name FROM orders AS o JOIN names AS n ON n.customer = o.customer",
    )

    ids = iter(range(20))

    def meanwhile() -> None:
        write(lake, "orders", orders(40))
        source(lake).delete(f"id = {next(ids)}")
        write(lake, "names", pa.table({"customer": [1], "name": ["d"]}))

    with monkeypatch.context() as patch:
        patch.setattr(refreshing, "_decide", then(refreshing._decide, meanwhile))
        refreshed(lake, table, row_count=20)
    assert lake.frontier(table) == {"orders": 0, "names": 0}

    with monkeypatch.context() as patch:
        patch.setattr(differential, "capture", then(differential.capture, meanwhile))
        refreshed(lake, table, Action.DIFFERENTIAL)
    assert lake.frontier(table) == {"orders": 2, "names": 1}

    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    assert lake.frontier(table) == {"orders": 4, "names": 2}


def test_p29_rows_of_others_in_a_stream_table_are_noticed_and_replaced(lake: Lake) -> None:
    place = lake.location(LARGE.name)
    row = pa.table({"id": [99], "amount": pa.array([9], pa.int32())})
    because = "somebody else changed rows"
    refreshed(lake, LARGE)
    write(lake, LARGE.name, row, configuration=None)
    refreshed(lake, LARGE, Action.REINITIALIZE, because=because)
    on_spark(lake, "UPDATE {mart.large} SET amount = 0 WHERE id = 2")
    write(lake, "orders", orders(20))
    refreshed(lake, LARGE, Action.REINITIALIZE, because=because)
    DeltaTable(place).restore(0)
    refreshed(lake, LARGE, Action.REINITIALIZE, because=because)
    DeltaTable(place).optimize.compact()
    assert Lake(lake.root, spark=NOWHERE).refresh(LARGE).action is Action.NO_DATA


@writers
def test_p02_of_two_first_refreshes_one_commits(
    driver_rows: int | None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:

    assert two_at_once(lake, LARGE, "full", monkeypatch) == ["ConflictingCommit", "Refresh"]
    commits = [each["operation"] for each in DeltaTable(lake.location(LARGE.name)).history()]
    # A table that Spark made is told the size of its files by a commit of its own.
    assert commits == ([] if driver_rows is None else ["SET TBLPROPERTIES"]) + ["WRITE"]
    assert refreshed(lake, LARGE).action is Action.NO_DATA


@tables
def test_p29_rows_that_others_write_during_a_refresh_do_not_stay(
    table: StreamTable, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(lake, table)
    write(lake, "orders", orders(20))
    columns = pa.schema(DeltaTable(lake.location(table.name)).schema().to_arrow())
    alien = pa.table([pa.array([99], field.type) for field in columns], schema=columns)

    def meanwhile() -> None:
        write_deltalake(lake.location(table.name), alien, mode="append")

    with monkeypatch.context() as patch:
        patch.setattr(differential, "change", then(differential.change, meanwhile))
        with contextlib.suppress(ConflictingCommit):
            lake.refresh(table)

    assert refreshed(lake, table).action is Action.REINITIALIZE
