"""A refresh fails where its query does, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from compiler import casefile
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.cli import app
from dagster_streamtables.compiler import Statement
from dagster_streamtables.errors import FailedQuery
from dagster_streamtables.orchestration.catalog.metadata import refresh_metadata
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.errors.error_translation import may_pass
from dagster_streamtables.runtime.observe.monitor import ALERTS
from runtime.delta import held, run_on_delta, stored, write
from runtime.refreshes import maintained, refreshed
from runtime.ways import no_orders

pytestmark = [pytest.mark.long, no_orders]

INT = pa.int32()
SOURCES = {
    "orders": pa.table(
        {
            "id": pa.array([1, 2], INT),
            "customer": pa.array([1, 2], INT),
            "amount": pa.array([4, 8], INT),
            "note": ["1", "2"],
        }
    ),
    "customers": pa.table({"id": pa.array([1, 2], INT), "share": pa.array([1, 1], INT)}),
}
[FAILING] = casefile.tables("failing.txt", Path(__file__).parent).values()


@pytest.fixture
def lake(lake: Lake) -> Lake:
    for name, rows in SOURCES.items():
        write(lake, name, rows)
    return lake


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("query", "change", "told", "mended"),
    [each for _, *each in FAILING],
    ids=[name for name, *_ in FAILING],
)
def test_rows_that_the_query_fails_on_leave_the_table_as_it_was(
    query: str, change: str, told: str, mended: str, lake: Lake
) -> None:
    table = maintained("mart.failing", query)
    first = refreshed(lake, table)
    rows = held(lake, table.name)
    run_on_delta(lake, change)

    for full in (False, True):
        with pytest.raises(FailedQuery) as raised:
            lake.refresh(table, full=full)
        assert told in raised.value.why
        assert raised.value.what.startswith('stream table "mart.failing": the query fails')
        assert held(lake, table.name) == rows

    run_on_delta(lake, mended)
    after = refreshed(lake, table, version=first.version + 1)
    assert after.action in (Action.DIFFERENTIAL, Action.FULL)


@pytest.mark.falls_back
def test_a_change_that_fails_where_the_query_does_not_is_computed_in_full(lake: Lake) -> None:
    """The product of the old amount and the new share is too large, and the two never met."""
    query = (
        "SELECT o.id, o.amount * c.share AS x "
        "FROM orders AS o JOIN customers AS c ON c.id = o.customer"
    )
    table = maintained("mart.product", query)
    run_on_delta(lake, "UPDATE orders SET amount = 2000000000 WHERE id = 1")
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE orders SET amount = 2 WHERE id = 1")
    run_on_delta(lake, "UPDATE customers SET share = 5 WHERE id = 1")

    refreshed(lake, table, Action.FULL, because="ARITHMETIC_OVERFLOW")

    assert stored(lake, table.name, ["id", "x"])["1", "10"] == 1


@pytest.mark.falls_back
def test_a_change_that_spark_cannot_plan_is_computed_in_full_and_told_everywhere(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fallbacks: list[str]
) -> None:
    table = maintained("mart.shares", "SELECT id, share FROM customers")
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE customers SET share = 5 WHERE id = 1")
    right = Statement.sql

    def wrong(self: Statement, views: Mapping[str, str], *, then: str, now: str) -> str:
        return f"SELECT no_such_column FROM ({right(self, views, then=then, now=now)})"

    monkeypatch.setattr(Statement, "sql", wrong)

    done = refreshed(lake, table, Action.FULL)

    assert done.reason.startswith("Spark could not run the change: [UNRESOLVED_COLUMN")
    assert done.reason == done.fallback
    assert len(fallbacks) == 1
    assert refresh_metadata(done)["streamtables/fallback"] == done.fallback
    assert lake.checks.invariants(table).violations == ()
    [event, *_] = lake.monitor.events([table])
    assert (event.kind, event.kind in ALERTS) == ("fell_back", True)

    run_on_delta(lake, "UPDATE customers SET share = 6 WHERE id = 1")
    refreshed(lake, table)
    [status] = lake.monitor.status([table])
    assert (status.fallbacks, status.fallback) == (2, done.fallback)
    [wrong] = lake.checks.invariants(table).violations
    assert "2 times in a row" in wrong.what
    shown = CliRunner().invoke(app, ["status", "--root", lake.root])
    assert "run in full 2 times in a row" in shown.output

    monkeypatch.undo()
    run_on_delta(lake, "UPDATE customers SET share = 7 WHERE id = 1")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    [status] = lake.monitor.status([table])
    assert (status.fallbacks, status.fallback) == (0, "")


@pytest.mark.parametrize("defect", [TypeError, AssertionError, KeyError])
def test_a_defect_of_our_own_is_no_reason_to_run_the_query_in_full(
    defect: type[Exception], lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = StreamTable("mart.shares", "SELECT id, share FROM customers")
    first = refreshed(lake, table)
    run_on_delta(lake, "UPDATE customers SET share = 5 WHERE id = 1")

    def broken(*_: object) -> None:
        raise defect("odd")

    monkeypatch.setattr(differential, "capture", broken)
    with pytest.raises(defect) as raised:
        lake.refresh(replace(table, differential_max_change_ratio=0))
    assert not may_pass(raised.value)
    assert lake.version(table.name) == first.version
    assert lake.controls.read(table.name).errors == 1
