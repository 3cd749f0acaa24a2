"""When a table is tried again, and what several refreshes come to in one report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dagster_streamtables.errors import ConflictingCommit, FailedQuery
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.delta.source_change import Capture
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh, Window
from dagster_streamtables.worker.outbox import Summary
from dagster_streamtables.worker.workload import RefreshMemory

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def window(before: int | None, after: int, rows: int | None) -> Window:
    return Window(before, after, next(iter(Capture)), rows)


def refresh(action: Action, version: int, before: int, after: int, rows: int = 0) -> Refresh:
    windows = {"orders": window(before, after, rows)}
    data = f"d{version}"
    seen = {"orders": Head(after, "")}
    return Refresh(
        "paid", action, "why", version, data, windows, inserted=rows, row_count=rows, seen=seen
    )


def test_what_may_pass_is_tried_again_soon_and_then_counts_as_a_failure() -> None:
    memory, lost = RefreshMemory(), ConflictingCommit("another refresh committed first")
    for seconds in (1, 2, 4):
        memory.note_failure(lost, NOW)
        assert memory.again_at == NOW + timedelta(seconds=seconds)
        assert memory.failures == 0
    memory.note_failure(lost, NOW)
    assert (memory.failures, memory.failed_at, memory.again_at) == (1, NOW, None)
    memory.note_refresh(refresh(Action.DIFFERENTIAL, 1, 0, 1), NOW, NOW, timed=False)
    assert (memory.failures, memory.error) == (0, "")
    memory.note_failure(FailedQuery("division by zero"), NOW)
    assert (memory.failures, memory.again_at) == (1, None)


def test_a_refresh_that_reads_nothing_newer_is_not_repeated_at_once() -> None:
    memory = RefreshMemory()
    idle = refresh(Action.NO_DATA, 1, 4, 4)
    memory.note_refresh(idle, NOW, NOW, timed=False)
    assert memory.again_at is None, "the first may have been asked for by a new definition"
    pauses: list[float] = []
    for _ in range(10):
        memory.note_refresh(idle, NOW, NOW, timed=False)
        assert memory.again_at is not None
        pauses.append((memory.again_at - NOW).total_seconds())
    assert pauses == sorted(pauses)
    assert pauses[-1] == 5
    memory.note_refresh(refresh(Action.NO_DATA, 1, 4, 5), NOW, NOW, timed=False)
    assert memory.again_at is None
    memory.note_refresh(refresh(Action.NO_DATA, 1, 5, 5), NOW, NOW, timed=True)
    assert memory.again_at is None, "time passes without any commit"


def test_a_summary_joins_windows_and_adds_rows() -> None:
    parts = [
        refresh(Action.DIFFERENTIAL, 1, 0, 3, rows=5),
        refresh(Action.DIFFERENTIAL, 2, 3, 4, rows=2),
        refresh(Action.NO_DATA, 2, 4, 6),
        refresh(Action.SKIP, 2, 6, 6),
    ]
    whole = Summary.of(parts[0], {})
    for each in parts[1:]:
        whole = whole.then(Summary.of(each, {}))
    told = whole.refresh
    assert told.seen == {"orders": Head(6, "")}
    assert (told.action, told.version, told.inserted, told.rows_in) == (
        Action.DIFFERENTIAL, 2, 7, 7,
    )  # fmt: skip
    assert told.windows["orders"].before == 0
    assert told.windows["orders"].after == 6
    assert whole.count == 4


def test_nothing_waits_for_a_time_that_a_clock_had_before_it_was_set_back() -> None:
    hour = timedelta(hours=1)
    memory = RefreshMemory(last=NOW, as_of=NOW, failures=1, failed_at=NOW, again_at=NOW)
    memory.set_back(NOW - hour)
    assert (memory.as_of, memory.failed_at, memory.again_at) == (NOW - hour,) * 3
    soon = NOW - hour + timedelta(seconds=4)
    memory.again_at = soon
    memory.set_back(NOW - hour)
    assert memory.again_at == soon, "it is tried again after a pause"
    assert not memory.is_recent(NOW - hour)
    fresh = RefreshMemory()
    fresh.set_back(NOW)
    assert fresh.as_of is None


def test_readers_come_first_for_a_second_or_longer_where_refreshes_take_longer() -> None:
    def first_after(seconds: float, took: float) -> bool:
        memory = RefreshMemory(last=NOW, took=timedelta(seconds=took))
        return memory.is_recent(NOW + timedelta(seconds=seconds))

    assert first_after(0.9, took=0.1)
    assert not first_after(1.1, took=0.1)
    assert first_after(4.9, took=1)
    assert not first_after(5.1, took=1)
    assert not RefreshMemory().is_recent(NOW)
