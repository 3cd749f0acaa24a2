"""What a table's author may choose: where changes are read, and what a new schema means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, CdcMode, Lake, OnManualWrite, OnSchemaChange, StreamTable
from dagster_streamtables.errors import SourceProblem
from dagster_streamtables.runtime.refresh import completion as feeds
from dagster_streamtables.runtime.refresh.completion import PROPERTY
from runtime.delta import on_spark, run_on_delta, write
from runtime.orders import LARGE, orders, source
from runtime.refreshes import refreshed


def captured(lake: Lake, mode: CdcMode) -> str:
    return refreshed(lake, replace(LARGE, cdc_mode=mode)).windows["orders"].capture


@pytest.mark.long
def test_a_source_moves_between_feed_and_snapshots_and_back(lake: Lake) -> None:
    refreshed(lake, LARGE)
    found: list[str] = []
    for row, mode in enumerate([CdcMode.CDF, CdcMode.SNAPSHOT, CdcMode.AUTO, CdcMode.SNAPSHOT]):
        source(lake).delete(f"id = {row}")
        found.append(captured(lake, mode))
    assert found == ["feed", "snapshots", "feed", "snapshots"]

    write(lake, "orders", orders(100))
    assert captured(lake, CdcMode.CDF) == "appended"


def test_a_feed_is_switched_on_by_choice_and_read_once_it_covers_the_window(lake: Lake) -> None:
    write(lake, "items", orders(*range(40)), feed=False)
    table = DeltaTable(lake.location("items"))
    auto = replace(LARGE, query=LARGE.query.replace("orders", "items"))
    asked = replace(auto, cdc_mode="enable")

    def window(declared: StreamTable) -> tuple[str, str]:
        table.update_incremental()
        table.delete(f"id = {table.version()}")
        done = refreshed(lake, declared)
        return done.windows["items"].capture, done.reason

    refreshed(lake, asked)
    assert window(auto)[0] == "snapshots"
    assert PROPERTY not in table.metadata().configuration, "nobody asked for it"
    capture, reason = window(asked)
    assert (capture, 'feed of "items" is now on' in reason) == ("snapshots", True)
    table.update_incremental()
    assert table.metadata().configuration[PROPERTY] == "true"
    version = table.version()
    assert lake.monitor.status([asked])[0].sources[0].feed
    assert window(asked)[0] == "snapshots", "the window across the switch"
    assert window(asked) == ("feed", '1 changed row in "items"')
    table.update_incremental()
    assert table.version() == version + 2, "it is switched on once"

    table.alter.set_table_properties({PROPERTY: "false"})
    assert window(auto)[0] == "snapshots", "it does not cover the window"


def test_a_feed_that_cannot_be_switched_on_fails_no_refresh(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, "items", orders(*range(40)), feed=False)
    asked = replace(LARGE, query=LARGE.query.replace("orders", "items"), cdc_mode=CdcMode.ENABLE)
    refreshed(lake, asked)
    DeltaTable(lake.location("items")).delete("id = 1")
    monkeypatch.setattr(feeds, "PROPERTY", "delta.noSuchProperty")
    done = refreshed(lake, asked, Action.DIFFERENTIAL, capture="snapshots")
    assert 'the change feed of "items" could not be turned on: ' in done.reason
    assert lake.controls.read(asked.name).errors == 0


def test_a_manual_write_is_left_to_a_person_where_it_is_asked_to(lake: Lake) -> None:
    strict = replace(LARGE, on_manual_write=OnManualWrite.REFUSE, max_consecutive_errors=2)
    lake.refresh(strict)
    table = DeltaTable(lake.location(strict.name))
    table.optimize.compact()
    assert lake.refresh(strict).action is Action.NO_DATA, "no row is another"
    table.delete("id = 1")
    left = table.version()
    write(lake, "orders", orders(100))
    for errors in (1, 2):
        with pytest.raises(SourceProblem, match="another writer changed the table") as raised:
            lake.refresh(strict)
        assert lake.controls.read(strict.name).errors == errors
    assert "version 0 is the last" in raised.value.why
    assert lake.version(strict.name) == left
    lake.controls.resume(strict.name)
    assert refreshed(lake, strict, full=True).action is Action.REINITIALIZE
    assert refreshed(lake, strict).action is Action.NO_DATA

    table.update_incremental()
    table.delete("id = 2")
    assert refreshed(lake, replace(strict, on_manual_write="repair")).action is Action.REINITIALIZE


def test_a_table_of_somebody_else_is_not_overwritten_where_it_is_asked_not_to(lake: Lake) -> None:
    strict = replace(LARGE, on_manual_write=OnManualWrite.REFUSE)
    write(lake, strict.name, orders(1))
    with pytest.raises(SourceProblem, match="another writer changed the table"):
        lake.refresh(strict)
    assert lake.version(strict.name) == 0


@pytest.mark.long
def test_a_feed_that_is_switched_off_and_on_is_left_where_it_has_a_gap(lake: Lake) -> None:
    refreshed(lake, LARGE)
    for row, feed in enumerate(["false", "true"]):
        source(lake).alter.set_table_properties({"delta.enableChangeDataFeed": feed})
        source(lake).delete(f"id = {row}")
    strict = replace(LARGE, cdc_mode=CdcMode.CDF)

    with pytest.raises(SourceProblem, match='feed of "orders" does not cover the window') as raised:
        lake.refresh(strict)
    assert "cdc_mode" in raised.value.fix
    assert captured(lake, CdcMode.AUTO) == "snapshots"
    source(lake).delete("id = 3")
    assert captured(lake, CdcMode.CDF) == "feed"


@pytest.mark.long
def test_a_new_schema_fails_the_refresh_where_it_is_asked_to(lake: Lake) -> None:
    strict = replace(LARGE, on_schema_change=OnSchemaChange.FAIL)
    first = refreshed(lake, strict)
    run_on_delta(lake, "INSERT INTO orders VALUES (200, 1, 9, 'x')")
    wider = "CAST(amount AS BIGINT) AS amount"
    rows = on_spark(lake, f"SELECT id, customer, {wider}, note FROM {{orders}}")
    files = rows.write.format("delta").mode("overwrite").option("overwriteSchema", True)
    files.save(lake.location("orders"))

    with pytest.raises(SourceProblem, match='columns of "orders" that the query uses') as raised:
        lake.refresh(strict)

    assert raised.value.why == "amount was int, and is bigint"
    assert lake.version(strict.name) == first.version
    assert refreshed(lake, strict, full=True).action is Action.REINITIALIZE
    assert refreshed(lake, strict).action is Action.NO_DATA
