"""Commands that only read: status, history, statistics, events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

import typer
from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Answers,
    Json,
    Root,
    Some,
    Table,
    Wide,
    app,
    color_text,
    moment,
    number_text,
    out,
    show_json,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns, pairs
from dagster_streamtables.cli.lake_project import LakeProject, open_lake
from dagster_streamtables.cli.slots import show_slots, slot_rows
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.observe.controls import FailedRefresh
from dagster_streamtables.runtime.observe.monitor import ALERTS, MonitorEvent
from dagster_streamtables.runtime.observe.source_health import SlotHealth, SourceHealth
from dagster_streamtables.runtime.observe.table_status import Condition, IntermediateStatus, Status
from dagster_streamtables.runtime.storage.history import PastRefresh, RefreshStatistics

_COLORS = {
    Condition.ERROR: "red",
    Condition.SUSPENDED: "yellow",
    Condition.ORPHANED: "yellow",
    Condition.NEW: "cyan",
}
Number = Annotated[int, typer.Option("--limit", "-n", min=1, help="Show this many, newest first.")]

STATUS = TableLayout(
    *columns("table", "status"),
    *columns("mode", "schedule", "data as of", wide=True),
    TableColumn("staleness"),
    *columns("rows", "size", "behind", number=True, wide=True),
    TableColumn("error", text=True),
)
SOURCES = TableLayout(
    TableColumn("source"),
    *columns("reflects", "newest", "bytes behind", number=True),
    *columns("feed", "read by", "since"),
    TableColumn("lost", text=True),
)
INTERMEDIATES = TableLayout(
    TableColumn("intermediate table"),
    *columns("version", "rows", "size", "files", number=True),
)
HISTORY = TableLayout(
    *columns("time", "action"),
    TableColumn("rows in", number=True, wide=True),
    *columns("inserted", "deleted", number=True),
    *columns("seconds", "version", number=True, wide=True),
    TableColumn("frontier", text=True, wide=True),
    TableColumn("reason", text=True),
)
STATISTICS = TableLayout(
    TableColumn("table"),
    TableColumn("since", wide=True),
    TableColumn("refreshes", number=True),
    *columns("rows in", "inserted", "deleted", number=True, wide=True),
    *columns("median", "p95", "most", number=True),
    TableColumn("actions", text=True, wide=True),
)
EVENTS = TableLayout(
    *columns("time", "table", "event"),
    TableColumn("message", text=True),
)


@app.command()
def status(
    project: LakeProject,
    tables: Some = None,
    strict: Annotated[
        bool,
        typer.Option(help="Exit with 3 if a table is suspended, in error, or stale."),
    ] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Show the status of stream tables and slots; of a single named table, in full.

    Reads only Delta logs. Without declarations, finds the tables by their logs, and knows neither
    schedules nor which tables are orphaned: stored, and declared by nothing.
    """
    found = _filter_by_name(project.logs.monitor.status(project.expectations), tables)
    slots = _of_tables(project.logs.retention.slots(), tables, project.logs.location)
    if as_json:
        show_json([*found, *slot_rows(slots)])
    elif tables and len(found) == 1:
        _show_one(found[0])
    else:
        out.print(STATUS.grid(map(_row, found), wide=wide))
    if not as_json:
        show_slots(slots, wide=wide)
    if strict and any(each.stale or each.status in _ILL for each in found):
        raise typer.Exit(NO)


_ILL = (Condition.ERROR, Condition.SUSPENDED)


def _filter_by_name(found: list[Status], names: list[str] | None) -> list[Status]:
    known = {each.table: each for each in found}
    for name in names or ():
        if name not in known:
            there = ", ".join(known) or "none"
            raise InvalidDefinition(
                f'there is no stream table "{name}"', fix=f"the stream tables are: {there}"
            )
    return [each for each in found if not names or each.table in names]


def _of_tables(
    slots: list[SlotHealth], names: list[str] | None, location: Callable[[str], str]
) -> list[SlotHealth]:
    """The slots that follow one of the named tables, by name or by place; all if none is named."""
    places = {location(name) for name in names or ()}
    return [
        each
        for each in slots
        if not names or any(source.location in places for source in each.sources)
    ]


def _row(status: Status) -> tuple[str | Text, ...]:
    schedule = status.resolved_schedule or status.schedule or "?"
    return (status.table, _condition(status), status.mode or "?", schedule,
            moment(status.data_timestamp), _staleness(status), *_contents(status),
            status.why or status.error or _fallback_reason(status))  # fmt: skip


def _fallback_reason(status: Status) -> str:
    """Why the last refreshes recomputed instead of being differential; empty if they did not."""
    if not status.fallbacks:
        return ""
    said = f"run in full {status.fallbacks} times in a row" * (status.fallbacks > 1)
    return f"{said or 'run in full'}: {status.fallback or 'see its history'}"


def _contents(status: Status) -> tuple[str, ...]:
    if not status.populated:
        return "", "", ""
    behind = [source.versions_behind for source in status.sources]
    known = None if None in behind else sum(filter(None, behind))
    return number_text(status.rows), size(status.bytes), number_text(known)


def _condition(status: Status) -> Text:
    color = _COLORS.get(status.status, "green")
    return color_text(str(status.status), color)


def _staleness(status: Status) -> str | Text:
    if not status.staleness_seconds:
        return "" if status.staleness_seconds is None else "none"
    text = duration(status.staleness_seconds)
    return color_text(f"{text}, stale", "red") if status.stale else text


def _show_one(status: Status) -> None:
    out.print(
        pairs(
            ("table", status.table),
            ("status", _condition(status)),
            ("why", status.why),
            ("errors in a row", str(status.errors)),
            ("last error", status.error),
            *([("fell back", _fallback_reason(status))] if status.fallbacks else []),
            ("mode", status.mode or "?"),
            ("schedule", status.schedule or "?"),
            ("resolved", status.resolved_schedule or "?"),
            ("data as of", moment(status.data_timestamp)),
            ("last commit", moment(status.refreshed_at)),
            ("staleness", _staleness(status)),
            *([("to do", "; ".join(status.work))] if status.work else []),
            *(_storage_pairs(status) if status.populated else ()),
        )
    )
    if not status.populated:
        return
    out.print()
    out.print(SOURCES.grid(map(_source, status.sources)))
    if status.intermediates:
        out.print()
        out.print(INTERMEDIATES.grid(map(_intermediate, status.intermediates)))


def _intermediate(table: IntermediateStatus) -> tuple[str, ...]:
    versions, rows, files = map(number_text, (table.version, table.rows, table.files))
    return (table.name, versions, rows, size(table.bytes), files)


def _source(health: SourceHealth) -> tuple[str, ...]:
    versions = (number_text(health.frontier), number_text(health.newest))
    feed = {None: "?", True: "on", False: "off"}[health.feed]
    return (health.source, *versions, size(health.bytes_behind), feed, health.capture,
            moment(health.behind_since), health.lost)  # fmt: skip


def _storage_pairs(status: Status) -> tuple[tuple[str, str], ...]:
    done = ", ".join(f"{number:,} {action}" for action, number in status.refreshes.items())
    return (
        ("version", number_text(status.version)),
        ("rows", number_text(status.rows)),
        ("size", size(status.bytes)),
        ("files", number_text(status.files)),
        ("refreshes", done),
    )


@app.command()
def history(
    table: Table, root: Root, limit: Number = 20, wide: Wide = False, as_json: Json = False
) -> None:
    """Show the past refreshes of a stream table, from its log, and its failed attempts."""
    lake = open_lake(root)
    past, failed = lake.monitor.history(table, limit), lake.monitor.failures(table)[:limit]
    if as_json:
        show_json({"table": table, "failed": failed, "refreshes": past})
        return
    rows = [*map(_past, past), *map(_failure_row, failed)]
    newest = sorted(rows, key=lambda row: str(row[0]), reverse=True)[:limit]
    out.print(HISTORY.grid(newest, wide=wide))


def _failure_row(attempt: FailedRefresh) -> tuple[str | Text, ...]:
    at = moment(datetime.fromisoformat(attempt.at))
    return (at, color_text("failed", "red"), "", "", "", "", "", "", attempt.error)


def _past(past: PastRefresh) -> tuple[str | Text, ...]:
    numbers = (past.rows_in, past.inserted, past.deleted)
    frontier = ", ".join(f"{name}@{version}" for name, version in past.frontier.items())
    return (moment(past.time), past.action, *map(number_text, numbers), f"{past.seconds:.2f}",
            str(past.version), frontier, past.reason)  # fmt: skip


@app.command()
def stats(tables: Some = None, *, root: Root, wide: Wide = False, as_json: Json = False) -> None:
    """Show totals and durations of past refreshes, as far as the logs go back."""
    lake = open_lake(root)
    names = tables or lake.retention.stream_tables()
    found = Answers(names, lake.monitor.statistics)
    if as_json:
        show_json(found)
    else:
        out.print(STATISTICS.grid(map(_totals, found), wide=wide))
    found.require_all()


def _totals(found: RefreshStatistics) -> tuple[str, ...]:
    actions = ", ".join(f"{number:,} {action}" for action, number in found.actions.items())
    rows = (found.refreshes, found.rows_in, found.inserted, found.deleted)
    times = (found.seconds_median, found.seconds_p95, found.seconds_most)
    return (
        found.table,
        moment(found.since),
        *map(number_text, rows),
        *map(duration, times),
        actions,
    )


@app.command()
def events(
    project: LakeProject,
    tables: Some = None,
    alerts: Annotated[bool, typer.Option(help="Show only events that need attention.")] = False,
    since: Annotated[datetime | None, typer.Option(help="Show only later events; UTC.")] = None,
    warn_hours: Annotated[
        float, typer.Option(min=0, help="Warn this many hours before needed history may be lost.")
    ] = 48,
    limit: Number = 50,
    as_json: Json = False,
) -> None:
    """Show what happened to stream tables, and what needs attention."""
    warn = timedelta(hours=warn_hours)
    # Any number of refreshes without an alert may be newer than one with an alert.
    found = project.logs.monitor.events(
        project.expectations, limit=None if alerts else limit, warn_before=warn
    )
    begin = "" if since is None else since.isoformat()
    found = [
        each
        for each in found
        if (not tables or each.table in tables)
        and (not alerts or each.kind in ALERTS)
        and each.time.isoformat() >= begin
    ][:limit]
    if as_json:
        show_json(found)
        return
    out.print(EVENTS.grid(map(_event, found)))


def _event(event: MonitorEvent) -> tuple[str | Text, ...]:
    kind = color_text(str(event.kind), "red" if event.kind in ALERTS else "green")
    return (moment(event.time), event.table, kind, event.message)
