"""A refresh that is killed, that fails, or that races has happened or has not.

Contents, frontier, and transaction number are one commit. So processes refresh in a loop while
their source is changed in every way, and are killed at random moments; a refresh is made to fail at
each of its steps; several processes refresh one table. After each: the table equals its query at
its frontier, the frontiers of its commits only grow, and the next refresh is exact.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.model.table_state import StreamTableState
from dagster_streamtables.runtime.refresh import refresh
from dagster_streamtables.runtime.storage import writer
from runtime.delta import log_of, write
from runtime.refresher import Refresher, killed
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.writers import CHANGES, change, rows

pytestmark = pytest.mark.hours

TABLES = (
    maintained(
        "mart.totals",
        "SELECT customer, SUM(amount) AS total, MIN(amount) AS least FROM orders GROUP BY customer",
    ),
    maintained("mart.copies", "SELECT customer, amount FROM orders WHERE amount > 2"),
    maintained(
        "mart.above",
        "SELECT o.customer, o.amount FROM orders AS o WHERE o.amount > "
        "(SELECT MIN(i.amount) + COUNT(*) FROM orders AS i WHERE i.customer = o.customer)",
    ),
)
writers = pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["delta-rs", "spark"])


@writers
@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.timeout(7200))])
def test_killed_again_and_again(
    kills: int, driver_rows: int, spark: SparkSession, tmp_path: Path
) -> None:
    lake, dice = Lake(tmp_path, spark=spark), random.Random(7)
    write(lake, "orders", rows(dice, 500))
    each_refreshed(lake, *TABLES)
    for number in range(kills):
        table = TABLES[number % len(TABLES)]
        before = lake.frontier(table)
        kinds = dice.choice(CHANGES), dice.choice(CHANGES)
        change(lake, dice, kinds[0])
        process = Refresher(lake.root, driver_rows, table).in_a_loop()
        change(lake, dice, kinds[1])
        killed(process, dice.uniform(0, 2))
        verify(lake, table, before, (number, kinds))


def verify(lake: Lake, table: StreamTable, before: Any, about: object) -> None:
    held = lake.check(table)
    assert held.equal, (about, table.name, held.sample)
    assert before["orders"] <= held.frontier["orders"]
    refresh_again(lake, table)
    found = lake.check(table)
    assert found.equal, (about, table.name, found.sample)
    [behind] = lake.retention.of(table.name)
    assert behind.capture in ("none", "files")  # no row came after the frontier
    assert_commits_follow_each_other(lake, table)


def refresh_again(lake: Lake, table: StreamTable) -> None:
    """The next refresh. A statement of the killed one may go on in Spark's server and commit during
    it: then one of the two wins, the other says so, and trying again is enough."""
    for _ in range(5):
        try:
            lake.refresh(table, full=False)
            return
        except ConflictingCommit:
            time.sleep(1)
    lake.refresh(table)


def assert_commits_follow_each_other(lake: Lake, table: StreamTable) -> None:
    """No window is applied twice: each commit has the next number, and no frontier goes back."""
    log = log_of(lake, table.name)
    infos = (
        action.get("commitInfo", {}).get("userMetadata") or ""
        for _, commit in log.commits(-1, log.version)
        for action in commit or ()
    )
    found = map(StreamTableState.from_json, infos)
    states = [state for state in found if state is not None]
    assert [state.sequence for state in states] == list(range(1, len(states) + 1))
    frontiers = [state.frontier["orders"] for state in states]
    assert frontiers == sorted(frontiers)
    assert len({state.refresh for state in states}) == len(states)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@writers
def test_four_refreshers_race(
    driver_rows: int, table: StreamTable, spark: SparkSession, tmp_path: Path
) -> None:
    lake, dice, rounds = Lake(tmp_path, spark=spark), random.Random(8), 8
    write(lake, "orders", rows(dice, 200))
    lake.refresh(table)
    refresher = Refresher(lake.root, driver_rows, table)
    racing = [refresher.times(rounds) for _ in range(4)]
    for number in range(2 * rounds):
        change(lake, dice, ("insert", "update", "delete")[number % 3])
        time.sleep(0.5)
    for process in racing:
        process.join()
        assert process.exitcode == 0
    verify(lake, table, {"orders": 0}, "race")


STEPS = {
    "before the sources are read": (refresh, "_decide", "before"),
    "before the change is read": (differential, "capture", "before"),
    "after the change is computed": (differential, "change", "after"),
    "before the commit": (writer, "change", "before"),
    "after the commit": (writer, "change", "after"),
    "after the report": (refresh, "commit_change", "after"),
}


class InjectedError(BaseException):
    pass


@writers
@pytest.mark.parametrize("step", STEPS)
def test_a_refresh_that_fails_at_a_step(
    step: str,
    driver_rows: int,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, table = Lake(tmp_path, spark=spark, driver_rows=driver_rows), TABLES[1]
    dice = random.Random(9)
    write(lake, "orders", rows(dice, 50))
    lake.refresh(table)
    change(lake, dice, "update")
    versions = lake.version("orders"), lake.version(table.name)

    fails(monkeypatch, *STEPS[step])
    with pytest.raises(InjectedError):
        lake.refresh(table)
    monkeypatch.undo()

    committed = step in ("after the commit", "after the report")
    assert lake.version(table.name) == (versions[1] or 0) + committed
    assert lake.frontier(table) == {"orders": versions[0] if committed else 0}
    assert lake.check(table).equal
    following = Action.NO_DATA if committed else Action.DIFFERENTIAL
    assert refreshed(lake, table).action is following
    assert_commits_follow_each_other(lake, table)


FIRST_STEPS = {
    "before the query is run": (differential, "full", "before"),
    "before the commit": (writer, "write", "before"),
    "after the commit": (writer, "write", "after"),
}


@pytest.mark.parametrize("step", FIRST_STEPS)
def test_a_first_refresh_that_fails_at_a_step(
    step: str, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLES[0]
    fails(monkeypatch, *FIRST_STEPS[step])
    with pytest.raises(InjectedError):
        lake.refresh(table)
    monkeypatch.undo()

    committed = step == "after the commit"
    assert (lake.version(table.name) is not None) == committed
    assert refreshed(lake, table).action is (Action.NO_DATA if committed else Action.REINITIALIZE)


def fails(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, when: str) -> None:
    """Make a step of a refresh fail, as a process that dies there would."""
    step = getattr(module, name)

    def failing(*args: Any, **more: Any) -> Any:
        if when == "after":
            step(*args, **more)
        raise InjectedError

    monkeypatch.setattr(module, name, failing)
