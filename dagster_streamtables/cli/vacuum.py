"""Commands about history: what sources retain for stream tables, and a vacuum that respects it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Annotated

import typer

from dagster_streamtables import amounts
from dagster_streamtables.cli.console import (
    Answers,
    Json,
    Root,
    Wide,
    app,
    err,
    number_text,
    out,
    plain,
    show_json,
    show_values,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.cli.slots import history_duration, show_slots, slot_rows
from dagster_streamtables.runtime.observe.retention import VacuumResult
from dagster_streamtables.runtime.observe.source_health import SourceHealth

RETENTION = TableLayout(
    *columns("stream table", "source"),
    *columns("reflects", "newest", number=True, wide=True),
    TableColumn("behind", number=True),
    TableColumn("read by", wide=True),
    TableColumn("history left", text=True),
)


@app.command()
def retention(root: Root, wide: Wide = False, as_json: Json = False) -> None:
    """Show how far tables and slots are behind their sources, and how long these keep the
    history."""
    kept = open_lake(root).retention
    answers = Answers(kept.stream_tables(), kept.of)
    slots = kept.slots()
    found = list(chain.from_iterable(answers))
    if as_json:
        tables = ({**plain(each), "versions_behind": each.versions_behind} for each in found)
        show_json([*tables, *slot_rows(slots)])
    else:
        out.print(RETENTION.grid(map(_row, found), wide=wide))
        show_slots(slots, wide=wide)
    answers.require_all()


def _row(health: SourceHealth) -> tuple[str, ...]:
    left = health.lost or history_duration(health.seconds_left)
    return (health.table, health.source, str(health.frontier), number_text(health.newest),
            size(health.bytes_behind), health.capture, left)  # fmt: skip


@app.command()
def vacuum(
    root: Root,
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Names, such as mart.revenue. Default: all stream tables."),
    ] = None,
    keep_hours: Annotated[
        float | None,
        typer.Option(min=0, help="Keep files this long. Default: the table's own setting."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only count the files.")] = False,
    force: Annotated[
        bool, typer.Option(help="Delete what slots need, too; these slots are then lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete unused files of tables, except those that a stream table or a slot still needs.

    Sources are vacuumed if they are named.
    """
    keep = None if keep_hours is None else timedelta(hours=keep_hours)
    with err.status("Looking for files"):
        kept = open_lake(root).retention
        names = tables or kept.stream_tables()
        answers = Answers(
            names,
            lambda name: (name, kept.vacuum(name, keep=keep, dry=dry_run, force=force)),
        )
    if as_json:
        about = (
            {"table": name, "dry_run": dry_run, **plain(done), "held_since": _hold_time(done)}
            for name, done in answers
        )
        show_values([*about], tables)
    else:
        for name, done in answers:
            _tell(name, done, dry_run)
    answers.require_all()


def _hold_time(done: VacuumResult) -> datetime | None:
    return None if done.held_since is None else datetime.fromtimestamp(done.held_since, UTC)


def _tell(table: str, done: VacuumResult, dry_run: bool) -> None:
    since = _hold_time(done)
    if since is not None:
        at = since.isoformat(timespec="seconds")
        kept = [each for each in done.held_by if each not in done.lost]
        who = f"Stream tables or slots ({', '.join(kept)})" if kept else "Stream tables"
        out.print(f"{who} still need {table} as of {at}: files in use since then are kept.")
    if done.lost:
        said = "would be lost" if dry_run else "are lost"
        out.print(f"These slots {said}: {', '.join(done.lost)}.")
    said = "would be deleted" if dry_run else "were deleted"
    out.print(
        f"{table}: {amounts.count(done.files, 'file')}, unused for more than {done.hours} hours, "
        f"{said}."
    )
