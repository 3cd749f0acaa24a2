"""Commands that declare replications, by options or a file, and change the declarations.

The options are the same for `create` and `alter`: one for each setting.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import Json, Root, err, out, plain, show_json
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.replications import (
    Name,
    open_replications,
    replications,
    status_values,
)
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.replication import (
    KINDS,
    Replication,
    declaration,
    read_replications,
    values_of,
)
from dagster_streamtables.replication.lifecycle.replication_errors import command
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationStatus,
    TableState,
)

LIST, PAIRS, TEXT, YES, NUMBER = list[str] | None, dict[str, str], str, bool, int
SINGULAR = {
    "publications": "publication", "tables": "table", "schemas": "schema", "types": "type",
    "targets": "target", "schema": "target-schema",
}  # fmt: skip
"""A setting → its option, if that has another name."""


@dataclass(frozen=True)
class ReplicationOption:
    """A setting of a declaration, and its option."""

    name: str
    """As `declaration` takes it."""
    kind: Any
    help: str

    @property
    def option(self) -> str:
        """Its name on the command line, without dashes."""
        return SINGULAR.get(self.name, self.name.replace("_", "-"))

    @property
    def default(self) -> Any:
        """The default in Python; None if it has none."""
        for of in (Replication, *KINDS.values()):
            for each in fields(of):
                if each.name == self.name and each.default is not MISSING:
                    return each.default
        return None

    def parameter(self) -> inspect.Parameter:
        """The parameter of a command, None if the option is not given."""
        flag = f"--{self.option}/--no-{self.option}" if self.kind is YES else f"--{self.option}"
        repeated = self.kind in (LIST, PAIRS)
        said = f"{self.help}{'; repeatable' if repeated else ''}.{self._by_default()}"
        kind = LIST if repeated else self.kind | None
        hint = Annotated[kind, typer.Option(flag, help=said, show_default=False)]
        place = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, place, default=None, annotation=hint)

    def _by_default(self) -> str:
        value = self.default
        if value in (None, ()):
            return ""
        if isinstance(value, timedelta):
            value = duration(value.total_seconds())
        if self.kind is YES:
            value = "yes" if value else "no"
        return f" Default: {value}."


SETTINGS = (
    ReplicationOption("postgres", TEXT, "Address of a server, without a password"),
    ReplicationOption("lake", TEXT, "Root of another lake"),
    ReplicationOption("publications", LIST, "A publication to read"),
    ReplicationOption("tables", LIST, "A table of the server, public.orders"),
    ReplicationOption("schemas", LIST, "All tables of a schema"),
    ReplicationOption("password_env", TEXT, "Variable that holds the password"),
    ReplicationOption("password_file", TEXT, "File that holds the password"),
    ReplicationOption("types", PAIRS, "interval=text, by type or column"),
    ReplicationOption("capture", TEXT, "wal, trigger or auto: how changes of a server come"),
    ReplicationOption("origin", TEXT, "any; none: without what replications wrote"),
    ReplicationOption("targets", PAIRS, "public.orders=raw.orders, by table"),
    ReplicationOption("schema", TEXT, "Schema of the other targets"),
    ReplicationOption("copy", YES, "Copy the rows that are there at the start"),
    ReplicationOption("enabled", YES, "No: store it, and ask nothing yet"),
    ReplicationOption("slot", TEXT, "Its slot, if it is not to have its own name"),
    ReplicationOption("slot_timeout", TEXT, "How long a new slot waits for open transactions: 5m"),
    ReplicationOption("slot_deadline", TEXT, "A lake lets the slot go if unused so long: 7d"),
    ReplicationOption("create_slot", YES, "No: the slot is there already"),
    ReplicationOption("on_conflict", TEXT, "error, apply or skip"),
    ReplicationOption("add_columns", YES, "Add published columns to targets"),
    ReplicationOption("commit_by_commit", YES, "A commit for each transaction"),
    ReplicationOption("disable_on_error", YES, "Disable it at an error"),
    ReplicationOption("on_slot_lost", TEXT, "error, or copy: copy all again"),
    ReplicationOption(
        "stopped_deadline", TEXT, "How long changes are kept for a table in trouble: 7d, never"
    ),
    ReplicationOption("max_rows", NUMBER, "Changes of a batch"),
)
BY_NAME = {each.name: each for each in SETTINGS}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of all settings; it takes those that are given as `given`."""
    signature = inspect.signature(command, eval_str=True)
    own = [each for name, each in signature.parameters.items() if name != "given"]
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    parameters = [*own, *(each.parameter() for each in SETTINGS)]

    def run_command(**values: Any) -> None:
        given = {
            each.name: _pairs(each.option, value) if each.kind is PAIRS else value
            for each in SETTINGS
            if (value := values.pop(each.name)) not in (None, "", [], ())
        }
        command(**values, given=given)

    run_command.__name__, run_command.__doc__ = command.__name__, command.__doc__
    run_command.__annotations__ = {each.name: each.annotation for each in parameters}
    run_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run_command


def setting_of(option: str) -> ReplicationOption:
    """The setting that an option, or a key of a file, names."""
    for each in SETTINGS:
        if option in (each.option, each.name):
            return each
    there = ", ".join(each.option for each in SETTINGS)
    raise typer.BadParameter(f"there is no setting {option!r}: name one of {there}.")


def _pairs(option: str, texts: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        key, is_pair, value = text.partition("=")
        if not (key and is_pair and value):
            raise typer.BadParameter(f"{text!r} is no pair: write --{option} NAME=VALUE.")
        found[key] = value
    return found


_Some = list[str] | None
_NAMED = ("publications", "tables", "schemas")
CHANGES = TableLayout(
    TableColumn("setting"),
    *columns("before", "after", text=True),
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


@replications.command()
@with_settings
def create(
    root: Root,
    given: Mapping[str, Any],
    name: Annotated[
        str, typer.Argument(help="The replication's name; with --file: only the one of that name.")
    ] = "",
    file: Annotated[str, typer.Option("--file", "-f", help="A YAML or TOML file.")] = "",
    as_json: Json = False,
) -> None:
    """Declare a replication by options, or those of a file; what a file changes is altered.

    Its publisher is asked whether it can begin. The first refresh copies. A password is never
    given here: --password-env or --password-file says where it is.
    """
    wanted = _read_declarations(name, file, given)
    known = open_replications(root)
    there = {each.name for each in known.list()} if file else set[str]()
    done = [
        (known.alter(each), "altered") if each.name in there else (known.create(each), "created")
        for each in wanted
    ]
    if as_json:
        show_json([status_values(status) for status, _ in done])
        return
    for status, what in done:
        tables = ", ".join(f"{each.name} → {each.target}" for each in status.tables)
        said = f": {tables}" if tables else "."
        out.print(f"Replication {status.name} is {what}{said}", soft_wrap=True)
        for warning in status.warnings:
            err.print(f"warning: {warning}", soft_wrap=True)


def _read_declarations(name: str, file: str, given: Mapping[str, Any]) -> list[Replication]:
    if not file:
        return [declaration({"name": name, **given}, "the options")]
    if given:
        raise InvalidDefinition(
            "a replication is declared twice", fix="give either --file or the options"
        )
    found = read_replications(file)
    chosen = [each for each in found if name in ("", each.name)]
    if not chosen:
        raise InvalidDefinition(
            f'the file does not declare replication "{name}"',
            where=str(Path(file)),
            fix=f"name one of these: {', '.join(each.name for each in found) or 'it has none'}",
        )
    return chosen
