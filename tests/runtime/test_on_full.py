"""What causes a refresh in full, and what `on_full` makes of each cause."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, Mode, OnFull, StreamTable
from dagster_streamtables.errors import (
    InvalidDefinition,
    RefusedFullRefresh,
    SuspendedTable,
    UnsupportedQuery,
)
from dagster_streamtables.reports import FullReason
from runtime.delta import run_on_delta, write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import maintained, refreshed
from runtime.test_column_types import KEY, MAP

PRODUCT = maintained(
    "mart.product",
    "SELECT o.id, o.amount * c.share AS x FROM orders o, customers c WHERE o.customer = c.id",
)


def redefine(_: Lake, table: StreamTable) -> StreamTable:
    return replace(table, query=f"{table.query} AND id < 50")


def change_all(lake: Lake, table: StreamTable) -> StreamTable:
    run_on_delta(lake, "UPDATE orders SET amount = amount + 1")
    return replace(table, differential_max_change_ratio=1)


def recreate(lake: Lake, table: StreamTable) -> StreamTable:
    shutil.rmtree(lake.location("orders"))
    write(lake, "orders", orders(1, 2))
    return table


def change_type(lake: Lake, table: StreamTable) -> StreamTable:
    rows = orders(1, 2)
    wide = rows.set_column(2, "amount", rows["amount"].cast("int64"))
    write(lake, "orders", wide, mode="overwrite", schema_mode="overwrite")
    return table


def lose_history(lake: Lake, table: StreamTable) -> StreamTable:
    run_on_delta(lake, "UPDATE orders SET amount = 9 WHERE id = 1")
    source(lake).create_checkpoint()
    (Path(lake.location("orders")) / "_delta_log" / f"{0:020}.json").unlink()
    return table


def write_by_hand(lake: Lake, table: StreamTable) -> StreamTable:
    DeltaTable(lake.location(table.name)).delete("id = 1")
    return table


CAUSES: dict[FullReason, Callable[[Lake, StreamTable], StreamTable]] = {
    FullReason.DEFINITION: redefine,
    FullReason.RATIO: change_all,
    FullReason.SOURCE: recreate,
    FullReason.SCHEMA: change_type,
    FullReason.HISTORY: lose_history,
    FullReason.MANUAL_WRITE: write_by_hand,
}


@pytest.mark.parametrize("reason", CAUSES)
def test_each_cause_is_refused_and_leaves_the_table_until_somebody_asks(
    lake: Lake, reason: FullReason
) -> None:
    strict = replace(LARGE, on_full=OnFull.REFUSE)
    assert refreshed(lake, strict).full_reason is FullReason.FIRST
    strict = CAUSES[reason](lake, strict)
    left = lake.version(strict.name)

    with pytest.raises(RefusedFullRefresh, match="the refresh would run the whole") as raised:
        lake.refresh(strict)

    assert f"({reason})" in str(raised.value)
    assert "It would read" in raised.value.why
    assert f"streamtables refresh {strict.name} --full" in raised.value.fix
    assert lake.version(strict.name) == left
    assert lake.controls.read(strict.name).errors == 1

    assert refreshed(lake, strict, full=True).full_reason is FullReason.REQUESTED
    run_on_delta(lake, "UPDATE orders SET amount = 8 WHERE id = 2")
    after = replace(strict, differential_max_change_ratio=0)
    assert refreshed(lake, after, Action.DIFFERENTIAL).full_reason is None


@pytest.mark.parametrize("reason", CAUSES)
def test_each_cause_has_its_code_in_the_report_and_the_history(
    lake: Lake, reason: FullReason, caplog: pytest.LogCaptureFixture
) -> None:
    watched = replace(LARGE, on_full=OnFull.WARN)
    refreshed(lake, watched)
    watched = CAUSES[reason](lake, watched)
    with caplog.at_level(logging.WARNING):
        done = refreshed(lake, watched)
    assert done.full_reason is reason
    assert f"mart.large: the query is run in full: {done.reason}" in caplog.messages
    [last, first] = lake.monitor.history(watched.name)
    assert (last.full_reason, first.full_reason) == (reason, FullReason.FIRST)

    run_on_delta(lake, "DELETE FROM orders WHERE id = 2")
    refreshed(lake, replace(watched, differential_max_change_ratio=0), Action.DIFFERENTIAL)
    found = lake.monitor.last_full(watched.name)
    assert found is not None
    assert found.full_reason is reason


def test_a_change_that_fails_is_refused(lake: Lake, fallbacks: list[str]) -> None:
    """The product of the old amount and the new share is too large, and the two never met."""
    shares = {"id": pa.array([0, 1, 2]), "share": pa.array([1, 1, 1], pa.int32())}
    write(lake, "customers", pa.table(shares))
    run_on_delta(lake, "UPDATE orders SET amount = 2000000000 WHERE id = 1")
    strict = replace(PRODUCT, on_full=OnFull.REFUSE)
    refreshed(lake, strict)
    run_on_delta(lake, "UPDATE orders SET amount = 2 WHERE id = 1")
    run_on_delta(lake, "UPDATE customers SET share = 5 WHERE id = 1")
    with pytest.raises(RefusedFullRefresh, match=r"\(failure\)"):
        lake.refresh(strict)
    assert lake.version(strict.name) == 0
    assert not fallbacks, "it was not run"


def test_a_table_of_mode_full_is_recomputed_as_declared(lake: Lake) -> None:
    declared = replace(TOTALS, mode="FULL", on_full=OnFull.REFUSE)
    assert refreshed(lake, declared).full_reason is FullReason.FIRST
    run_on_delta(lake, "DELETE FROM orders WHERE id = 2")
    assert refreshed(lake, declared, Action.FULL).full_reason is FullReason.MODE
    again = replace(declared, query=f"{declared.query} HAVING SUM(amount) > 1")
    assert refreshed(lake, again).full_reason is FullReason.MODE


def test_mode_auto_refuses_a_query_that_cannot_be_maintained(lake: Lake) -> None:
    query = "SELECT id, rand() AS r FROM orders"
    allowed = StreamTable("mart.random", query, mode=Mode.AUTO)
    lake.refresh(allowed)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 2")
    assert lake.refresh(allowed).full_reason is FullReason.UNSUPPORTED
    with pytest.raises(InvalidDefinition, match="rand"):
        lake.refresh(replace(allowed, on_full=OnFull.REFUSE))


def test_mode_auto_takes_the_change_where_the_other_way_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    auto = replace(LARGE, mode="AUTO", differential_max_change_ratio=0.5)
    monkeypatch.setattr(
        "dagster_streamtables.runtime.model.costs._predict", lambda way, *_: len(way)
    )
    for id in (1, 2, 3):
        refreshed(lake, auto)
        run_on_delta(lake, f"DELETE FROM orders WHERE id = {id}")
    assert refreshed(lake, auto, Action.FULL).full_reason is FullReason.COST
    run_on_delta(lake, "DELETE FROM orders WHERE id = 4")
    refreshed(lake, replace(auto, on_full=OnFull.REFUSE), Action.DIFFERENTIAL)


@pytest.mark.parametrize("query", [MAP, KEY])
def test_mode_auto_refuses_what_it_ran_in_full_for_its_types(lake: Lake, query: str) -> None:
    allowed = StreamTable("mart.typed", query, mode=Mode.AUTO)
    lake.refresh(allowed)
    strict = replace(allowed, on_full=OnFull.REFUSE)
    for full in (False, True):
        run_on_delta(lake, "UPDATE orders SET amount = amount + 1 WHERE id = 1")
        with pytest.raises(UnsupportedQuery) as raised:
            lake.refresh(strict, full=full)
        assert "set on_full to allow" in raised.value.fix
    assert lake.refresh(allowed).full_reason is FullReason.UNSUPPORTED


def test_a_table_that_was_suspended_by_refusals_goes_on_once_they_are_allowed(lake: Lake) -> None:
    strict = replace(LARGE, on_full=OnFull.REFUSE, max_consecutive_errors=1)
    refreshed(lake, strict)
    write_by_hand(lake, strict)
    with pytest.raises(RefusedFullRefresh):
        lake.refresh(strict)
    with pytest.raises(SuspendedTable):
        lake.refresh(strict, full=True)
    watched = replace(strict, on_full=OnFull.WARN)
    assert refreshed(lake, watched).full_reason is FullReason.MANUAL_WRITE


def test_the_state_of_a_change_has_no_key_that_older_versions_do_not_know(lake: Lake) -> None:
    refreshed(lake, LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 2")
    refreshed(lake, LARGE, Action.DIFFERENTIAL)
    [newest, first] = [
        each["userMetadata"] for each in DeltaTable(lake.location(LARGE.name)).history()
    ]
    assert ("full_reason" in newest, "full_reason" in first) == (False, True)
