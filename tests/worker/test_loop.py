"""Turns of a worker over real tables: what is due is refreshed, upstream first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.scheduling.dueness import Backoff
from dagster_streamtables.worker.lake_workload import of_folder
from dagster_streamtables.worker.loop import Worker
from dagster_streamtables.worker.reload import Reload
from worker.conftest import Write, rows, settle, turns

Declare = Callable[..., Worker]

PAID = "-- schedule: CALCULATED\nSELECT id, customer, amount FROM orders WHERE amount > 10"
TOTALS = "-- schedule: on change\nSELECT customer, sum(amount) AS total FROM paid GROUP BY customer"


@pytest.fixture
def declare(tmp_path: Path, lake: Lake) -> Declare:
    """A worker over a folder with these files: ``declare(paid="SELECT …")``."""

    def declared(**queries: str) -> Worker:
        folder = tmp_path / "tables"
        folder.mkdir(exist_ok=True)
        for name, query in queries.items():
            (folder / f"{name}.sql").write_text(query)
        return Worker(of_folder(str(folder), lake))

    return declared


def errors(worker: Worker) -> list[str]:
    return [name for name, known in worker.memory.items() if known.error]


@pytest.mark.smoke("the worker")
def test_a_chain_follows_its_source(declare: Declare, lake: Lake, write: Write) -> None:
    write("orders", id=[1, 2], customer=[7, 7], amount=[5, 20])
    worker = declare(paid=PAID, totals=TOTALS)
    settle(worker)
    assert rows(lake, "totals") == [{"customer": 7, "total": 20}]
    write("orders", id=[3], customer=[8], amount=[30])
    settle(worker)
    assert rows(lake, "totals") == [{"customer": 7, "total": 20}, {"customer": 8, "total": 30}]
    before = worker.lines.refreshes
    settle(worker)
    assert worker.lines.refreshes == before, "nothing moved"
    assert worker.finish()


def test_one_table_that_fails_or_is_slow_holds_up_nobody_else(
    declare: Declare, lake: Lake, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("orders", id=[1, 2], customer=[7, 7], amount=[0, 20])
    began, go = threading.Event(), threading.Event()
    whole = Lake.refresh

    def slow(self: Lake, table: StreamTable, **about: Any) -> Refresh:
        if table.name == "slow":
            began.set()
            assert go.wait(300)
        return whole(self, table, **about)

    monkeypatch.setattr(Lake, "refresh", slow)
    worker = declare(
        slow="-- schedule: on change\nSELECT id FROM orders",
        below="-- schedule: on change\nSELECT id FROM slow",
        wrong="-- schedule: on change\nSELECT id, 100 / amount AS share FROM orders",
        beside="-- schedule: on change\nSELECT id, amount FROM orders",
    )
    assert not worker.driven.nodes.broken
    turns(worker, lambda: lake.version("beside") == 0 and "wrong" in errors(worker))
    assert began.is_set()
    write("orders", id=[3], customer=[7], amount=[30])
    turns(worker, lambda: lake.version("beside") == 1)
    assert lake.version("slow") is None
    assert lake.version("below") is None
    assert worker.memory["wrong"].failures == 1, "it is not tried again before its time"
    go.set()
    turns(worker, lambda: lake.version("below") is not None)
    turns(worker, lambda: [each["id"] for each in rows(lake, "below")] == [1, 2, 3])
    assert worker.finish()


def test_what_reads_a_diamond_reads_one_state_and_is_not_starved(
    declare: Declare, lake: Lake, write: Write
) -> None:
    write("orders", id=[1], customer=[7], amount=[20])
    worker = declare(
        left_side="SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
        right_side="SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
        both="-- schedule: on change\nSELECT l.customer, l.total AS one, r.total AS two "
        "FROM left_side AS l JOIN right_side AS r ON l.customer = r.customer",
    )
    for amount in (1, 2, 3, 4):
        write("orders", id=[amount], customer=[7], amount=[amount])
        before = lake.version("both")
        turns(worker, lambda before=before: lake.version("both") != before)
        [row] = rows(lake, "both")
        assert row["one"] == row["two"]
    settle(worker)
    assert rows(lake, "both") == [{"customer": 7, "one": 30, "two": 30}]
    assert worker.finish()


@pytest.mark.long
def test_a_suspended_table_waits_and_a_changed_definition_applies(
    declare: Declare, lake: Lake, write: Write, tmp_path: Path
) -> None:
    write("orders", id=[1], customer=[7], amount=[20])
    eager = "-- schedule: on change\nSELECT id{more} FROM orders"
    worker = declare(eager=eager.format(more=""))
    lake.controls.suspend("eager", "for a while")
    settle(worker)
    assert lake.version("eager") is None
    lake.controls.resume("eager")
    turns(worker, lambda: lake.version("eager") == 0)
    folder, driven = tmp_path / "tables", worker.driven
    reload = Reload(driven, lambda: of_folder(str(folder), lake), [folder], every=0.01)
    worker = Worker(driven, reload=reload)
    settle(worker)
    (folder / "eager.sql").write_text(eager.format(more=", amount"))
    assert reload.look()
    turns(worker, lambda: "amount" in (lake.columns("eager") or {}))
    assert worker.finish()


@pytest.mark.long
def test_a_table_that_fails_again_and_again_is_suspended_and_others_go_on(
    declare: Declare, lake: Lake, write: Write
) -> None:
    write("orders", id=[1], customer=[7], amount=[0])
    worker = declare(
        wrong="-- schedule: on change\nSELECT id, 100 / amount AS share FROM orders",
        beside="-- schedule: on change\nSELECT id FROM orders",
    )
    soon = timedelta(milliseconds=1)
    worker.driven = replace(worker.driven, backoff=Backoff(soon, soon))
    turns(worker, lambda: bool(lake.controls.read("wrong").suspension))
    settle(worker)
    assert worker.lines.failures == 3
    write("orders", id=[2], customer=[7], amount=[0])
    turns(worker, lambda: len(rows(lake, "beside")) == 2)
    settle(worker)
    assert worker.lines.failures == 3
    assert lake.version("wrong") is None
    assert worker.finish()


@pytest.mark.long
def test_a_clock_that_is_set_back_keeps_no_table_waiting(
    declare: Declare, lake: Lake, write: Write
) -> None:
    write("orders", id=[1], customer=[7], amount=[20])
    worker = declare(hourly="-- schedule: 1s\nSELECT id FROM orders")
    settle(worker)
    known = worker.memory["hourly"]
    known.as_of = known.last = datetime.now(UTC) + timedelta(days=1)
    write("orders", id=[2], customer=[7], amount=[20])
    turns(worker, lambda: len(rows(lake, "hourly")) == 2)
    assert worker.finish()


def test_a_worker_says_that_the_one_that_works_has_other_definitions(
    declare: Declare, lake: Lake, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("orders", id=[1], customer=[7], amount=[20])
    first = declare(eager="-- schedule: 1h\nSELECT id FROM orders")
    assert first.turn()
    second = declare(eager="-- schedule: 1h\nSELECT id, amount FROM orders")
    with caplog.at_level(logging.INFO, "dagster_streamtables"):
        for _ in range(3):
            assert second.turn()
    said = [
        each.getMessage() for each in caplog.records if "other definitions" in each.getMessage()
    ]
    assert len(said) == 1, "it is said once"
    assert lake.version("eager") is None
    assert first.finish()
    assert second.finish()


def test_a_second_worker_stands_by_until_the_first_ends(
    declare: Declare, lake: Lake, write: Write
) -> None:
    write("orders", id=[1], customer=[7], amount=[20])
    eager = "-- schedule: on change\nSELECT id FROM orders"
    first, second = declare(eager=eager), declare(eager=eager)
    settle(first)
    write("orders", id=[2], customer=[7], amount=[20])
    for _ in range(3):
        assert second.turn()
        assert not second.lease.is_active
    assert lake.version("eager") == 0
    assert first.finish()
    settle(second)
    assert lake.version("eager") == 1
    assert second.finish()


def test_a_table_that_is_not_due_at_the_start_is_left_alone(
    declare: Declare, lake: Lake, write: Write
) -> None:
    """A worker that is started again does not refresh what is refreshed once a year."""
    write("orders", id=[1], customer=[7], amount=[20])
    yearly = "-- schedule: @yearly\nSELECT id FROM orders"
    first = declare(yearly=yearly)
    settle(first)
    assert lake.version("yearly") == 0, "its first refresh is due at once"
    assert first.finish()
    write("orders", id=[2], customer=[7], amount=[20])
    again = declare(yearly=yearly)
    settle(again)
    assert lake.version("yearly") == 0
    assert again.finish()
