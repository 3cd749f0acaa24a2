"""The options by which a replication is declared: the same for `create` and `alter`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from typing import Annotated, Any

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.replication.lifecycle.replication import KINDS, Replication

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
        """The value in Python if it is not given; None if there is none."""
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
        if value in (None, ()) or value is MISSING:
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
