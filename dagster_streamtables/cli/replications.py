"""Commands of replications: declare them, refresh them, look at them, mend them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.app import NO, Json, Root, Wide, app, seconds
from dagster_streamtables.cli.ending import GracefulExit, SignalInterrupt
from dagster_streamtables.cli.grid import pairs
from dagster_streamtables.cli.output import (
    Answers,
    count,
    err,
    errors_in_words,
    moment,
    out,
    plain,
    show_json,
    size,
)
from dagster_streamtables.cli.project import open_lake
from dagster_streamtables.cli.replication_tables import (
    check_values,
    refresh_values,
    show_check,
    show_list,
    show_one,
    show_refresh,
    status_values,
)
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.replication.lifecycle.status import TableState

replications = typer.Typer(
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
    return Replications(open_lake(root))


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
    with errors_in_words():
        known = open_replications(root)
        chosen = names or [each.name for each in known.list() if each.enabled]

    def refresh_one(name: str) -> ReplicationRefresh:
        found = known.refresh(name, max_rows=max_rows, wait=wait, strict=False)
        return found.require_some()

    done = Answers(chosen, refresh_one)
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
    with errors_in_words():
        found = open_replications(root).list()
    if as_json:
        show_json([status_values(each) for each in found])
    elif found:
        show_list(found, wide=wide)
    else:
        out.print("There are no replications.")


@replications.command()
def show(name: Name, root: Root, as_json: Json = False) -> None:
    """Show all that is known of one: its declaration, its tables, its errors."""
    with errors_in_words():
        found = open_replications(root).read(name)
    show_json(status_values(found)) if as_json else show_one(found)


@replications.command()
def lag(name: Name, root: Root, as_json: Json = False) -> None:
    """Show how far a replication is behind its publisher, and how changes come."""
    with errors_in_words():
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
            ("commits", "" if found.commits is None else count(found.commits)),
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
    with errors_in_words():
        found = open_replications(root).check(name, *(tables or ()), wait=wait)
    show_json(check_values(found)) if as_json else show_check(found)
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
    with errors_in_words(), GracefulExit() as ending:
        try:
            told: list[str] = []
            for done in open_replications(root).follow(name, every):
                with ending.whole():
                    said = [error.what for error in done.stopped.values()]
                    for error in done.stopped.values() if said != told else ():
                        err.print(str(error), markup=False, soft_wrap=True)
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
    with errors_in_words():
        done = open_replications(root).copy(name, *(tables or ()), wait=wait)
    show_json(refresh_values(done)) if as_json else show_refresh(done)
    for error in done.stopped.values():
        err.print(f"warning: {error.what}", markup=False, soft_wrap=True)


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
    with errors_in_words():
        known = open_replications(root)
        known.skip(name, position, table or None)
        skips: Sequence[str] = known.read(name).skips
    out.print(f"Replication {name} will leave out {', '.join(skips)}.")


@replications.command()
def disable(name: Name, root: Root) -> None:
    """Refuse to refresh it until it is enabled; its slot keeps what it will need."""
    with errors_in_words():
        open_replications(root).disable(name)
    out.print(f"Replication {name} is disabled.")


@replications.command()
def enable(name: Name, root: Root) -> None:
    """Let it be refreshed again."""
    with errors_in_words():
        open_replications(root).enable(name)
    out.print(f"Replication {name} is enabled.")


@replications.command()
def detach(name: Name, root: Root) -> None:
    """Disable it and forget its slot, which stays at the publisher until it is dropped there."""
    with errors_in_words():
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
    with errors_in_words():
        open_replications(root).drop(name, keep_slot=keep_slot)
    out.print(f"Replication {name} is dropped; its tables stay.")
