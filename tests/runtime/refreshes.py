"""Refreshes, each with the proof that the stream table is its query afterwards."""

from __future__ import annotations

from typing import Any

from dagster_streamtables import Action, Lake, Refresh, StreamTable


def maintained(name: str, query: str, **settings: Any) -> StreamTable:
    """A stream table that follows by its change, however much of a source changed."""
    return StreamTable(name, query, differential_max_change_ratio=0, **settings)


def refreshed(
    lake: Lake,
    table: StreamTable,
    action: str = "",
    *,
    full: bool = False,
    capture: str = "",
    because: str = "",
    **told: object,
) -> Refresh:
    """One refresh, and the proof that the table is its query afterwards.

    What it tells of itself is as given: its action, attributes of the report, how the change of
    each source was captured, and words of its reason.
    """
    done = lake.refresh(table, full=full)
    found = lake.check(table)
    assert found.equal, (done, str(found), found.sample)
    assert not action or done.action == action, done
    assert {name: getattr(done, name) for name in told} == told, done
    assert not capture or {each.capture for each in done.windows.values()} == {capture}, done
    assert because in done.reason, done
    return done


def each_refreshed(lake: Lake, *tables: StreamTable) -> list[Refresh]:
    return [refreshed(lake, table) for table in tables]


def each_followed(lake: Lake, *tables: StreamTable) -> list[Refresh]:
    """As `each_refreshed`, where each computes its change and has one."""
    found = each_refreshed(lake, *tables)
    assert {done.action for done in found} == {Action.DIFFERENTIAL}, found
    return found
