"""Commands of slots, the durable positions of subscriptions: list, create, drop, move."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from dagster_streamtables.changes.clock.clock import as_of_bound
from dagster_streamtables.changes.position import SubscriptionRequest
from dagster_streamtables.changes.subscription import DEADLINE
from dagster_streamtables.changes.subscription_slots import move_slot, new_slot
from dagster_streamtables.cli.console import (
    Commands,
    Json,
    Root,
    Wide,
    app,
    out,
    seconds,
    show_json,
)
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.cli.slot_table import show_positions, slot_rows
from dagster_streamtables.cli.subscribe import (
    AsOf,
    Clock,
    Dialect,
    NoSnapshot,
    Query,
    Recompute,
    Zone,
    relation_of,
)

slots = Commands(no_args_is_help=True, help="Durable positions of subscriptions.")
app.add_typer(slots, name="slots")

Name = Annotated[str, typer.Argument(help="The slot's name.")]


@slots.command("list")
def list_(root: Root, wide: Wide = False, as_json: Json = False) -> None:
    """Show the slots, and how far each is behind."""
    found = open_lake(root).retention.slots()
    if as_json:
        show_json(slot_rows(found))
    elif found:
        show_positions(found, wide=wide)
    else:
        out.print("There are no slots.")


@slots.command()
def create(
    name: Name,
    root: Root,
    relation: Annotated[
        str, typer.Argument(metavar="[RELATION]", help="What its reader will follow.")
    ] = "",
    query: Query = "",
    as_of: AsOf = "",
    no_snapshot: NoSnapshot = False,
    deadline: Annotated[
        float | None,
        typer.Option(parser=seconds, metavar="TIME", help="Let go if unused so long; 0: never."),
    ] = DEADLINE.total_seconds(),
    clock: Clock = None,
    recompute: Recompute = False,
    dialect: Dialect = "spark",
    session_timezone: Zone = "UTC",
    as_json: Json = False,
) -> None:
    """Hold what a reader will need that subscribes later."""
    given = relation_of(relation, query)
    lake = open_lake(root)
    request = SubscriptionRequest(lake, given, dialect, session_timezone, recompute, clock)
    made = new_slot(
        lake.slots, name, request.start_new(snapshot=not no_snapshot),
        as_of_bound(as_of or None),
        deadline=timedelta(seconds=deadline) if deadline else None,
    )  # fmt: skip
    _show(root, made.name, "is created", as_json=as_json)


@slots.command()
def drop(
    name: Name,
    root: Root,
    force: Annotated[bool, typer.Option(help="Drop it even if it is being read.")] = False,
) -> None:
    """Remove a slot; vacuums need not keep anything for it any more."""
    open_lake(root).slots.drop(name, even_if_read=force)
    out.print(f"Slot {name} is dropped.")


@slots.command()
def move(
    name: Name,
    root: Root,
    as_of: AsOf = "",
    no_snapshot: NoSnapshot = False,
    recompute: Recompute = False,
    dialect: Dialect = "spark",
    session_timezone: Zone = "UTC",
    as_json: Json = False,
) -> None:
    """Let the next reader begin at a time, forward or back. A lost slot is active again.

    A query is read in the dialect and the zone that it was created with.
    """
    lake = open_lake(root)
    slot = lake.slots.read(name)
    request = SubscriptionRequest(
        lake, slot.relation, dialect, session_timezone, recompute, slot.clock
    )
    begin = request.start_new(snapshot=not no_snapshot)
    move_slot(lake.slots, name, begin, as_of_bound(as_of or None))
    _show(root, name, "is moved", as_json=as_json)


def _show(root: str, name: str, done: str, *, as_json: bool) -> None:
    found = [each for each in open_lake(root).retention.slots() if each.slot.name == name]
    if as_json:
        show_json(slot_rows(found))
        return
    held = (f"{each.source}@{each.acknowledged}" for health in found for each in health.sources)
    out.print(f"Slot {name} {done}: {', '.join(held)}", soft_wrap=True)
