"""Commands that change stream tables: refresh, alter, suspend, resume, drop."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    File,
    Folder,
    Json,
    Module,
    Root,
    Some,
    Table,
    Wide,
    app,
    color_text,
    err,
    extent,
    number_text,
    out,
    plain,
    show_json,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import (
    LakeProject,
    open_lake,
    open_project,
    require_declarations,
    sound,
)
from dagster_streamtables.declare.alter import alter_table
from dagster_streamtables.errors import DamagedTable, InvalidDefinition
from dagster_streamtables.runtime.dag import Outcome
from dagster_streamtables.runtime.drop import DropResult
from dagster_streamtables.runtime.lake import Lake

REFRESHES = TableLayout(
    *columns("table", "action"),
    *columns("rows in", "inserted", "deleted", "rows", number=True, wide=True),
    TableColumn("took", number=True),
    TableColumn("reason", text=True),
)


@app.command()
def refresh(
    project: LakeProject,
    tables: Some = None,
    full: Annotated[bool, typer.Option(help="Recompute, whatever changed.")] = False,
    upstream: Annotated[bool, typer.Option(help="Include the tables upstream.")] = False,
    downstream: Annotated[bool, typer.Option(help="Include the tables downstream.")] = False,
    max_concurrent: Annotated[
        int, typer.Option(min=1, help="Refresh at most this many tables at the same time.")
    ] = 4,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Refresh stream tables, upstream tables first.

    If a table fails, the tables downstream of it are skipped, the others are refreshed, and the
    command exits with 1.
    """
    chosen = require_declarations(project).select(tables, above=upstream, below=downstream)
    broken = [Outcome(each.name, error=each.error) for each in chosen if each.error]
    ready = sound(chosen)
    # A terminal shows progress; a log has the line of each table when it is done.
    lines = not (out.is_terminal or as_json)
    if lines:
        out.print(REFRESHES.grid(map(_row, broken), wide=wide))
    with _progress() as progress:
        task = progress.add_task("", total=len(ready))

        def advance(outcome: Outcome) -> None:
            progress.update(task, advance=1, description=outcome.table)
            if lines:
                out.print(REFRESHES.grid([_row(outcome)], wide=wide, header=False))

        done = project.work().refresh_all(
            ready,
            full=full,
            by_hand=err.is_terminal,
            max_concurrent=max_concurrent,
            on_outcome=advance,
        )
    found = [*broken, *done]
    if as_json:
        show_json([_values(each) for each in found])
    elif not lines:
        out.print(REFRESHES.grid(map(_row, found), wide=wide))
    for each in found:
        if each.error is not None and not as_json:
            err.print("", str(each.error), sep="\n", soft_wrap=True)
    if any(each.refresh is None for each in found):
        raise typer.Exit(1)


def _progress() -> Progress:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def _values(outcome: Outcome) -> dict[str, Any]:
    done = outcome.refresh
    about = plain(done) if done is not None else {"table": outcome.table}
    more = {"rows_in": done.rows_in} if done is not None else {}
    return {**about, **more, "error": outcome.error, "held_by": outcome.held_by}


def _row(outcome: Outcome) -> tuple[str | Text, ...]:
    done = outcome.refresh
    if done is not None:
        rows = (done.rows_in, done.inserted, done.deleted, done.row_count)
        return (outcome.table, color_text(str(done.action), "green"), *map(number_text, rows),
                duration(done.seconds), done.reason)  # fmt: skip
    if outcome.held_by:
        said, color = f"not refreshed upstream: {', '.join(outcome.held_by)}", "yellow"
        return (outcome.table, color_text("skipped", color), "", "", "", "", "", said)
    what = str(outcome.error).splitlines()[0] if str(outcome.error) else repr(outcome.error)
    return (outcome.table, color_text("failed", "red"), "", "", "", "", "", what)


@app.command()
def alter(
    table: Table,
    folder: Folder = "",
    module: Module = "",
    file: File = "",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, as in the header of a .sql file; repeatable."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(help="Remove a setting: its default applies; repeatable.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help="Short for --set schedule=…")] = None,
    mode: Annotated[str | None, typer.Option(help="Short for --set mode=…")] = None,
    description: Annotated[str | None, typer.Option(help="Short for --set description=…")] = None,
    min_schedule_seconds: Annotated[
        float, typer.Option(min=0, help="Refuse shorter schedules.")
    ] = 60,
) -> None:
    """Change settings of a stream table in its .sql file.

    Nothing else in the file changes. Reload the code location to apply the change there.
    """
    short = {"schedule": schedule, "mode": mode, "description": description}
    settings: dict[str, object] = {name: v for name, v in short.items() if v is not None}
    settings |= dict(_pair(each) for each in setting or ()) | dict.fromkeys(unset or ())
    if not settings:
        raise InvalidDefinition("no setting to alter is given", fix="give --set NAME=VALUE")
    # This command reads no tables, so it needs no root.
    project = open_project(root="/", tables=folder, module=module, file=file)
    declared = require_declarations(project).one(table).declared
    done = alter_table(declared, settings, min_schedule_seconds=min_schedule_seconds)
    for name, value in settings.items():
        said = "its default" if value is None else str(getattr(done, name))
        out.print(f"{table}: {name} is {said}", soft_wrap=True)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidDefinition(f'"{text}" is not NAME=VALUE', fix="write --set NAME=VALUE")
    return name.strip().lower(), value


@app.command()
def suspend(
    table: Table,
    root: Root,
    why: Annotated[str, typer.Option(help="The reason that refused refreshes report.")] = "",
) -> None:
    """Refuse every refresh of a stream table until it is resumed."""
    lake = open_lake(root)
    lake.controls.suspend(table, why)
    there = _is_there(lake, table)
    said = "" if there else " It does not exist yet, and will not be created."
    out.print(f"{table} is suspended.{said}")


def _is_there(lake: Lake, table: str) -> bool:
    try:
        return lake.version(table) is not None
    except DamagedTable:
        return True


@app.command()
def resume(table: Table, root: Root) -> None:
    """Allow refreshes of a stream table again, and reset its error count."""
    was = open_lake(root).controls.resume(table)
    out.print(f"{table} is resumed." if was else f"{table} was not suspended.")


@app.command()
def drop(
    table: Table,
    root: Root,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask to confirm.")] = False,
    force: Annotated[bool, typer.Option(help="Drop it even if stream tables read it.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only show what would be deleted.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a stream table and all that belongs to it.

    Its intermediate tables, its suspension and its error count are also deleted. Asks to confirm,
    with the number of rows and the readers that lose the table. While the table is still declared,
    the next refresh creates it again.
    """
    lake = open_lake(root)
    found = lake.drop(table, even_if_read=force, dry=True)
    if not yes and not dry_run:
        err.print(_contents(found), soft_wrap=True)
        typer.confirm(f"Delete {table} below {root}?", abort=True, err=True)
    done = found if dry_run else lake.drop(table, even_if_read=force)
    if as_json:
        show_json(done)
    else:
        out.print(f"{'Would drop' if dry_run else 'Dropped'} {_contents(done)}", soft_wrap=True)


def _contents(found: DropResult) -> str:
    """What is deleted with a table, and who loses it."""
    readers = f" These stream tables read it: {', '.join(found.readers)}." if found.readers else ""
    slots = f" These slots follow it: {', '.join(found.slots)}." if found.slots else ""
    return f"{found.table}: {extent(found.rows, found.bytes)}.{readers}{slots}"
