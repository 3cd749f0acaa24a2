"""The command that changes the declaration of a replication, and shows what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Annotated, Any

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.app import Json, Root
from dagster_streamtables.cli.grid import TableColumn, TableLayout
from dagster_streamtables.cli.output import err, errors_in_words, out, plain, show_json
from dagster_streamtables.cli.replication_options import BY_NAME, setting_of, with_settings
from dagster_streamtables.cli.replication_tables import status_values
from dagster_streamtables.cli.replications import Name, open_replications, replications
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.errors import command
from dagster_streamtables.replication.lifecycle.files import declaration, values_of
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.status import ReplicationStatus, TableState

_Some = list[str] | None
_NAMED = ("publications", "tables", "schemas")
CHANGES = TableLayout(
    TableColumn("setting"), TableColumn("before", text=True), TableColumn("after", text=True)
)


@replications.command()
@with_settings
def alter(
    name: Name,
    root: Root,
    given: Mapping[str, Any],
    add_table: Annotated[
        _Some, typer.Option(help="Replicate this table of the server, too; repeatable.")
    ] = None,
    drop_table: Annotated[
        _Some, typer.Option(help="Replicate it no longer; its rows stay; repeatable.")
    ] = None,
    add_publication: Annotated[
        _Some, typer.Option(help="Read this publication, too; repeatable.")
    ] = None,
    drop_publication: Annotated[_Some, typer.Option(help="Read it no longer; repeatable.")] = None,
    reset: Annotated[
        _Some, typer.Option(help="A setting that gets its default again: types; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change a replication; its positions stay. Settings that are not given stay as they are.

    --publication, --table and --schema replace the ones before; --type and --target are added.
    It shows what changes, and which tables are copied by the next refresh.
    """
    with errors_in_words():
        known = open_replications(root)
        before = known.read(name)
        values = values_of(before.replication)
        wanted = _merge_settings(values, given)
        for key, added, dropped in (
            ("tables", add_table, drop_table),
            ("publications", add_publication, drop_publication),
        ):
            if added or dropped:
                wanted[key] = _change_list(wanted, key, added or [], dropped or [], name)
        for option in reset or ():
            wanted.pop(setting_of(option).name, None)
        declared = declaration({**wanted, "name": name}, "the options")
        after = known.alter(declared, dry_run=dry_run)
    changes = _changes(values, values_of(declared))
    if as_json:
        copied = sorted(_tables_to_copy(before, after))
        changed = {key: {"before": b, "after": a} for key, (b, a) in changes.items()}
        show_json({**status_values(after), "changes": plain(changed), "copied": copied})
        return
    _show(name, before, after, changes, done="would change" if dry_run else "is altered")


def _merge_settings(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(values)
    kinds = ({"postgres", "lake"} & values.keys(), {"postgres", "lake"} & given.keys())
    if kinds[1] and kinds[0] != kinds[1]:  # it is refused, and not for the settings of the other
        own = {each.name for each in fields(Replication)}
        found = {key: value for key, value in values.items() if key in own}
    if "publications" in given or given.keys() & {"tables", "schemas"}:
        found = {key: value for key, value in found.items() if key not in _NAMED}
        kept = ("tables", "schemas") if "publications" not in given else ()
        found |= {key: values[key] for key in kept if key in values}
    pairs = {
        key: {**values.get(key, {}), **value}
        for key, value in given.items()
        if isinstance(value, Mapping)
    }
    return {**found, **given, **pairs}


def _change_list(
    wanted: Mapping[str, Any], key: str, added: list[str], dropped: list[str], name: str
) -> list[str]:
    there = [*wanted.get(key, ())]
    if key == "tables" and (added or dropped) and wanted.get("publications"):
        reads = ", ".join(wanted["publications"])
        raise InvalidDefinition(
            f'replication "{name}" names no tables',
            why=f"it reads what is published by {reads}",
            fix="change the publication at the publisher: ALTER PUBLICATION … ADD TABLE; of a "
            "lake: streamtables publications alter",
        )
    for each in dropped:
        if each not in there:
            raise InvalidDefinition(
                f'replication "{name}" does not name "{each}"',
                why=f"its {key} are {', '.join(there) or 'none'}",
                fix="name it as it was declared",
            )
    return [each for each in dict.fromkeys([*there, *added]) if each not in dropped]


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = dict.fromkeys([*before, *after])
    both = {key: (before.get(key), after.get(key)) for key in keys}
    return {
        key: pair for key, pair in both.items() if _setting_text(pair[0]) != _setting_text(pair[1])
    }


def _tables_to_copy(before: ReplicationStatus, after: ReplicationStatus) -> dict[str, str]:
    """Published table → target, of the tables that the next refresh copies now."""
    replication = after.replication
    were = {each.name: each for each in before.tables}
    found = {
        each.name: each.target
        for each in after.tables
        if each.state is TableState.NEW and were[each.name].target != each.target
    }
    there = {each.name for each in after.tables if each.state is not TableState.REMOVED}
    new = set(getattr(replication.publisher, "tables", ())) - there
    return found | {each: replication.target(each) for each in sorted(new)}


def _show(
    name: str,
    before: ReplicationStatus,
    after: ReplicationStatus,
    changes: Mapping[str, tuple[Any, Any]],
    *,
    done: str,
) -> None:
    if not changes:
        out.print(f"Replication {name} has these settings already.")
        return
    out.print(f"Replication {name} {done}.")
    rows = (
        (BY_NAME[key].option, _setting_text(b), _setting_text(a)) for key, (b, a) in changes.items()
    )
    out.print(CHANGES.grid(rows))
    copied = [f"{table} → {target}" for table, target in _tables_to_copy(before, after).items()]
    if copied:
        how = (
            "The next refresh copies" if after.replication.copy else "The next refresh begins with"
        )
        out.print(f"{how} {', '.join(copied)}.", soft_wrap=True)
    left = {*_tables(before)} - {*_tables(after)}
    if left:
        out.print(f"No longer followed, with its rows left: {', '.join(sorted(left))}.")
    if "types" in changes and before.tables:
        again = command("copy", name)
        out.print(f"Columns of existing targets keep their types until a copy: {again} TABLE")
    for warning in after.warnings:
        err.print(f"warning: {warning}", soft_wrap=True)


def _tables(status: ReplicationStatus) -> tuple[str, ...]:
    return tuple(getattr(status.replication.publisher, "tables", ()))


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, timedelta):
        return duration(value.total_seconds())
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={each}" for key, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
