"""Commands of declared replications: refresh, show, compare, copy again, enable, drop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from dagster_streamtables import amounts
from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Answers,
    Commands,
    GracefulExit,
    Json,
    Root,
    SignalInterrupt,
    Wide,
    app,
    color_text,
    err,
    moment,
    number_text,
    out,
    plain,
    seconds,
    show_json,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns, pairs
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationCheck,
    ReplicationRefresh,
    ReplicationStatus,
    TableState,
    TableStatus,
)

REPLICATIONS = TableLayout(
    TableColumn("name"),
    TableColumn("from", text=True, wide=True),
    TableColumn("tables", number=True, wide=True),
    *columns("state", "refreshed"),
    TableColumn("errors", number=True, wide=True),
    *columns("error", "warnings", text=True),
)
TABLES = TableLayout(
    *columns("table", "target", "state"),
    *columns("position", "version", "rows", number=True),
    TableColumn("error", text=True),
)


replications = Commands(
    no_args_is_help=True, help="Tables kept equal to those of another lake or a PostgreSQL server."
)
app.add_typer(replications, name="replications")

Name = Annotated[str, typer.Argument(help="The replication's name.")]
Tables = Annotated[
    list[str] | None, typer.Argument(help="Tables, as the publisher names them. Default: all.")
]
Wait = Annotated[
    float,
    typer.Option(parser=seconds, metavar="TIME", help="Wait so long for one that refreshes it."),
]
MaxRows = Annotated[
    int | None, typer.Option(min=1, help="Stop after so many changes, at a transaction's end.")
]


def open_replications(root: str) -> Replications:
    return Replications(open_lake(root, ask_spark=True))


@replications.command()
def refresh(
    root: Root,
    names: Annotated[list[str] | None, typer.Argument(help="Names. Default: all enabled.")] = None,
    max_rows: MaxRows = None,
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Copy what is new, then apply the changes that are there.

    If a replication or a table fails, the others are refreshed, and the command exits with 1.
    """
    known = open_replications(root)
    chosen = names or [each.name for each in known.list() if each.enabled]
    done = Answers(
        chosen,
        lambda name: known.refresh(name, max_rows=max_rows, wait=wait, strict=False).require_some(),
    )
    for each in done:
        done.errors += each.stopped.values()
    if as_json:
        show_json([refresh_values(each) for each in done])
    elif not chosen:
        out.print("There are no replications to refresh.")
    else:
        for each in done:
            show_refresh(each)
    done.require_all()


@replications.command("list")
def list_(root: Root, wide: Wide = False, as_json: Json = False) -> None:
    """Show the replications: whether they are enabled, their errors, and their last refresh."""
    found = open_replications(root).list()
    if as_json:
        show_json([status_values(each) for each in found])
    elif found:
        out.print(REPLICATIONS.grid(map(_replication, found), wide=wide))
    else:
        out.print("There are no replications.")


@replications.command()
def show(name: Name, root: Root, as_json: Json = False) -> None:
    """Show all that is known of one: its declaration, its tables, its errors."""
    found = open_replications(root).read(name)
    show_json(status_values(found)) if as_json else show_one(found)


@replications.command()
def lag(name: Name, root: Root, as_json: Json = False) -> None:
    """Show how far a replication is behind its publisher, and how changes come."""
    known = open_replications(root)
    found, captures = known.lag(name), known.captures(name)
    stopped = [t for t in known.read(name).tables if t.state is TableState.STOPPED]
    if as_json:
        show_json({**plain(found), "captures": captures})
        return
    ways = sorted(set(captures.values()))
    tables = {way: [n for n, each in captures.items() if each == way] for way in ways}
    out.print(
        pairs(
            ("seconds", duration(found.seconds)),
            ("bytes", size(found.bytes)),
            ("commits", "" if found.commits is None else number_text(found.commits)),
            ("kept for", "; ".join(f"{t.name}, stopped since {moment(t.since)}" for t in stopped)),
            ("captured by", "; ".join(f"{way}: {', '.join(n)}" for way, n in tables.items())),
        )
    )


@replications.command()
def check(
    name: Name, root: Root, tables: Tables = None, wait: Wait = 0.0, as_json: Json = False
) -> None:
    """Compare the targets with their origin at one moment; exit with 3 if one differs.

    It is refreshed to that moment first. Every row of both sides is read.
    """
    found = open_replications(root).check(name, *(tables or ()), wait=wait)
    show_json({**plain(found), "equal": found.equal}) if as_json else show_check(found)
    if not found.equal:
        raise typer.Exit(NO)


@replications.command()
def follow(
    name: Name,
    root: Root,
    every: Annotated[
        float, typer.Option(parser=seconds, metavar="TIME", help="Pause between two refreshes.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Refresh again and again, until interrupted. A line for each refresh that did something."""
    with GracefulExit() as ending:
        try:
            told: list[str] = []
            for done in open_replications(root).follow(name, every):
                with ending.whole():
                    said = [error.what for error in done.stopped.values()]
                    for error in done.stopped.values() if said != told else ():
                        err.print(str(error), soft_wrap=True)
                    told = said
                    if done.action == "NO_DATA":
                        continue
                    if as_json:
                        out.print(json.dumps(refresh_values(done)), soft_wrap=True)
                    else:
                        show_refresh(done)
        except SignalInterrupt:
            err.print(f"{name} goes on where it is when it is refreshed again.")


@replications.command()
def copy(
    name: Name, root: Root, tables: Tables = None, wait: Wait = 0.0, as_json: Json = False
) -> None:
    """Copy tables again, in place of the rows that are there; all, with a new slot, by default."""
    done = open_replications(root).copy(name, *(tables or ()), wait=wait)
    show_json(refresh_values(done)) if as_json else show_refresh(done)
    for error in done.stopped.values():
        err.print(f"warning: {error.what}", soft_wrap=True)


@replications.command()
def skip(
    name: Name,
    position: Annotated[str, typer.Argument(help="A number as its error tells, or an LSN.")],
    root: Root,
    table: Annotated[
        str, typer.Option(help="Whose position it is: a lake numbers those of each table.")
    ] = "",
) -> None:
    """Leave out a transaction, as a whole, when it comes."""
    known = open_replications(root)
    known.skip(name, position, table or None)
    skips: Sequence[str] = known.read(name).skips
    out.print(f"Replication {name} will leave out {', '.join(skips)}.")


@replications.command()
def disable(name: Name, root: Root) -> None:
    """Refuse to refresh it until it is enabled; its slot keeps what it will need."""
    open_replications(root).disable(name)
    out.print(f"Replication {name} is disabled.")


@replications.command()
def enable(name: Name, root: Root) -> None:
    """Let it be refreshed again."""
    open_replications(root).enable(name)
    out.print(f"Replication {name} is enabled.")


@replications.command()
def detach(name: Name, root: Root) -> None:
    """Disable it and forget its slot, which stays at the publisher until it is dropped there."""
    known = open_replications(root)
    slot = known.read(name).slot
    known.detach(name)
    out.print(f"Replication {name} is detached. Drop its slot {slot} at the publisher.")


@replications.command()
def drop(
    name: Name,
    root: Root,
    keep_slot: Annotated[bool, typer.Option(help="Leave its slot at the publisher.")] = False,
) -> None:
    """Drop a replication and its slot. The targets stay as they are."""
    open_replications(root).drop(name, keep_slot=keep_slot)
    out.print(f"Replication {name} is dropped; its tables stay.")


def status_values(status: ReplicationStatus) -> dict[str, Any]:
    """A JSON object; its declaration has no secrets."""
    return {**plain(status), "replication": status.replication.to_json()}


def refresh_values(done: ReplicationRefresh) -> dict[str, Any]:
    return {**plain(done), "action": done.action}


def _replication(found: ReplicationStatus) -> tuple[str | Text, ...]:
    state = "enabled" if found.enabled else "detached" if found.slot is None else "disabled"
    stopped = [each.name for each in found.tables if not each.is_current]
    error = found.error or ""
    if stopped:
        error = f"{len(stopped)} of {len(found.tables)} tables in trouble: {error}"
    colour = "green" if found.enabled and not found.error else "red" if found.error else "yellow"
    return (found.name, found.replication.publisher.place, str(len(found.tables)),
            color_text(state, colour), moment(found.refreshed_at), str(found.errors or ""),
            error, "; ".join(found.warnings))  # fmt: skip


def show_one(found: ReplicationStatus) -> None:
    declared = found.replication
    settings = {
        name: value
        for name, value in declared.to_json().items()
        if name not in ("name", "publisher", "targets", "schema", "slot", "enabled")
    }
    out.print(
        pairs(
            ("replication", found.name),
            ("from", declared.publisher.place),
            ("publications", ", ".join(declared.publications)),
            ("slot", found.slot or "detached"),
            ("enabled", "yes" if found.enabled else "no"),
            ("refreshed", moment(found.refreshed_at)),
            ("refreshed by", found.worker),
            ("errors in a row", str(found.errors or "")),
            ("error", found.error or ""),
            ("failed", moment(found.failed_at)),
            ("conflicts", _counts(found.conflicts)),
            ("leaves out", ", ".join(found.skips)),
            ("settings", ", ".join(f"{name}={value}" for name, value in settings.items())),
            ("warnings", "; ".join(found.warnings)),
        )
    )
    out.print()
    out.print(TABLES.grid(map(_table, found.tables)))
    for each in found.tables:
        if not each.is_current:
            out.print()
            out.print(
                pairs(
                    ("in trouble", each.name),
                    ("since", moment(each.since)),
                    ("changes kept until", moment(each.kept_until)),
                    ("error", each.error),
                    ("fix", each.fix),
                )
            )


def _table(found: TableStatus) -> tuple[str, ...]:
    position = "" if found.position is None else str(found.position)
    version = "" if found.version is None else number_text(found.version)
    rows = "" if found.version is None else number_text(found.rows)
    return (
        found.name, found.target, str(found.state), position, version, rows, found.error,
    )  # fmt: skip


def show_refresh(done: ReplicationRefresh) -> None:
    left = "" if done.complete else "; there is more"
    skipped = f"; left out: {', '.join(done.skipped)}" if done.skipped else ""
    out.print(f"{done}{skipped}{left}", soft_wrap=True)


def show_check(found: ReplicationCheck) -> None:
    for target, each in sorted(found.tables.items()):
        if each.error:
            out.print(target, color_text("was not compared", "red"), each.error, soft_wrap=True)
            continue
        if each.equal:
            said = color_text("is equal to its origin", "green")
            out.print(
                target,
                said,
                f"at position {each.position}: {amounts.count(each.rows, 'row')}",
                soft_wrap=True,
            )
            continue
        said = color_text("differs from its origin", "yellow" if each.note else "red")
        counts = f"{amounts.count(each.missing, 'row')} missing, {each.unexpected:,} unexpected"
        out.print(target, said, f"at position {each.position}: {counts}", soft_wrap=True)
        if each.note:
            out.print(f"  {each.note}", soft_wrap=True)
        for row in each.sample:
            out.print(f"  {_row(row)}", soft_wrap=True)


def _row(row: Mapping[str, Any]) -> str:
    values = ", ".join(f"{k}={v!r}" for k, v in row.items() if not k.startswith("__"))
    copies = row["__copies"]
    times = f" {copies} times" if copies > 1 else ""
    return f"{row['__difference']}{times}: {values}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
