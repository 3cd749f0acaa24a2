"""`Replication`: the declaration of tables that are kept equal to those of a publisher."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.publisher_declaration import (
    FromLake,
    FromPostgres,
    json_fields,
)
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.setting import Range, normalize_fields
from dagster_streamtables.setting.values import seconds_in

NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
KINDS: Mapping[str, type[FromLake] | type[FromPostgres]] = {
    each.kind: each for each in (FromLake, FromPostgres)
}
"""The kinds of publishers."""


@dataclass(frozen=True)
class Replication:
    """Tables of a lake that are copied from a publisher and kept equal to it.

    Raises:
        InvalidDefinition: The name is no name of a folder, two tables have one target, or a value
            is not one of those that are possible.
    """

    name: str
    """Letters, digits, underscores and hyphens."""
    publisher: FromLake | FromPostgres
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the name of a published table, the table of the lake that it goes to."""
    schema: str | None = None
    """The schema of the targets that are not named above; None for that of the publisher."""
    copy: bool = True
    """Whether the rows that are there at the start are copied; if not, the targets must exist."""
    enabled: bool = True
    """Whether it may be refreshed. One that is not is only stored: nothing is asked of the
    publisher until it is enabled."""
    slot: str | None = None
    """The name of its slot at the publisher; None for its own name."""
    create_slot: bool = True
    """Whether the slot is made at the start; if not, one of that name must be there."""
    on_conflict: Literal["error", "apply", "skip"] = "error"
    """What happens where a change meets rows that do not fit: stop, let the publisher's row win, or
    keep the target's."""
    add_columns: bool = False
    """Whether published columns that a target lacks are added to it."""
    commit_by_commit: bool = False
    """Whether each transaction of the publisher is a commit of its own; if not, many are one."""
    disable_on_error: bool = False
    """Whether the first error that only a person can mend disables it."""
    on_slot_lost: Literal["error", "copy"] = "error"
    """What happens if the publisher has let the slot go: stop, or copy all tables again, at most
    three times an hour."""
    stopped_deadline: Annotated[timedelta, Range(0)] | None = timedelta(days=1)
    """For how long the publisher keeps the changes for a table that is in trouble; then that table
    must be copied again. None for ever, 0 for not at all."""
    max_rows: Annotated[int, Range(1)] = 200_000
    """A batch ends with the transaction that reaches so many changes."""

    def __post_init__(self) -> None:
        normalize_fields(self)
        if not NAME.fullmatch(self.name):
            raise InvalidDefinition(
                f'"{self.name}" is not a valid replication name',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        for target in self.targets.values():
            TableNames("").location(target)
        chosen = sorted(map(self.target, self.targets))
        for one, following in pairwise(chosen):
            if one == following:
                raise InvalidDefinition(
                    f'replication "{self.name}" has two tables for the target "{one}"',
                    why="the rows of one would be deleted as those of the other",
                    fix="give each published table a target of its own",
                )

    def target(self, table: str) -> str:
        """The table of the lake that a published table goes to.

        >>> shop = FromLake("/shop", ["p"])
        >>> Replication("r", shop).target("public.orders")
        'public.orders'
        >>> Replication("r", shop, schema="raw").target("public.orders")
        'raw.orders'
        """
        if table in self.targets:
            return self.targets[table]
        if self.schema is None:
            return table
        return f"{self.schema}.{table.rpartition('.')[2]}"

    @property
    def slot_name(self) -> str:
        """The name of its slot at the publisher."""
        return self.publisher.slot_name(self.name) if self.slot is None else self.slot

    @property
    def publications(self) -> tuple[str, ...]:
        """The names of the publications that it reads."""
        return tuple(self.publisher.publications) or (self.slot_name,)

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        return json_fields(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Replication:
        """The declaration that `to_json` has written."""
        known = dict(values)
        publisher = dict(known.pop("publisher"))
        kind = KINDS[publisher.pop("kind")]
        for place in (publisher, known):
            for name in ("slot_timeout", "slot_deadline", "stopped_deadline"):
                if place.get(name) is not None:
                    place[name] = timedelta(seconds=place[name])
        return cls(publisher=kind(**publisher), **known)


_RENAMED = {"target_schema": "schema", "copy_data": "copy"}
"""As in the YAML of a component."""
_OWN = tuple(each.name for each in fields(Replication) if each.name not in ("name", "publisher"))


def read_replications(file: str | Path) -> list[Replication]:
    """The replications that a file declares, in its order.

    It has a list ``replications``, each with a `name`, `postgres` (an address) or `lake` (a root),
    and the fields of `FromPostgres`, `FromLake` and `Replication`; the schema of the targets is
    `target_schema`.

    Raises:
        InvalidDefinition: The file cannot be read, or an entry is invalid.
    """
    path = Path(file)
    content = _content(path)
    listed = content.get("replications") if isinstance(content, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise InvalidDefinition(
            "the file declares no replications",
            where=str(path),
            why="it has no list of that name",
            fix="begin with replications: and a list of what each is, with its name",
        )
    found = [declaration(each, str(path)) for each in listed]
    for each in found:
        if [other.name for other in found].count(each.name) > 1:
            raise InvalidDefinition(
                f'the file declares replication "{each.name}" twice',
                where=str(path),
                fix="give each a name of its own",
            )
    return found


def declaration(values: Mapping[str, Any], place: str) -> Replication:
    """A replication from plain values, as in a file.

    Args:
        place: The origin of the values, for errors.

    Raises:
        InvalidDefinition: They are invalid.
    """
    said = {_RENAMED.get(name, name): value for name, value in values.items()}
    name = str(said.pop("name", ""))
    found = {kind: said.pop(kind, None) for kind in KINDS}
    places = {kind: each for kind, each in found.items() if each is not None}
    if len(places) != 1:
        raise InvalidDefinition(
            f'replication "{name}" names '
            + ("both a server and a lake" if places else "nothing to read from"),
            where=place,
            fix="give postgres, the address of a server, or lake, the root of another lake",
        )
    [(kind, place_of)] = places.items()
    kinds = _settings(KINDS[kind])
    unknown = sorted(said.keys() - {*kinds, *_OWN})
    if unknown:
        raise InvalidDefinition(
            f'replication "{name}" has no setting "{unknown[0]}"',
            where=place,
            fix=f"it has these: {', '.join(sorted({*kinds, *_OWN}))}",
        )
    source = {key: value for key, value in said.items() if key in kinds}
    own = {key: value for key, value in said.items() if key in _OWN}
    for key in ("slot_deadline", "slot_timeout"):
        if isinstance(text := source.get(key), str):
            source[key] = _duration(text, place)
    if isinstance(deadline := own.get("stopped_deadline"), str):
        own["stopped_deadline"] = None if deadline == "never" else _duration(deadline, place)
    return Replication(name, KINDS[kind](str(place_of), **{"publications": (), **source}), **own)


def values_of(replication: Replication) -> dict[str, Any]:
    """The plain values from which `declaration` makes the replication."""
    source = replication.publisher
    stored = [key for key in _settings(type(source)) if key != "storage_options"]
    return {
        "name": replication.name,
        source.kind: source.place,
        **{key: getattr(source, key) for key in stored},
        **{key: getattr(replication, key) for key in _OWN},
    }


def _settings(kind: type[FromLake] | type[FromPostgres]) -> list[str]:
    """The fields of a kind of publisher but for the place."""
    return [each.name for each in fields(kind) if each.name != kind.place_field]


def _duration(text: str, place: str) -> timedelta:
    seconds = seconds_in(text)
    if seconds is None:
        raise InvalidDefinition(
            f'"{text}" is not a duration', where=place, fix="write a number and a unit: 12h or 7d"
        )
    return timedelta(seconds=seconds)


def _content(path: Path) -> Any:
    import yaml

    try:
        text = path.read_text()
        return tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InvalidDefinition(
            "the file of replications cannot be read",
            where=str(path),
            why=str(error.strerror) if isinstance(error, OSError) else str(error),
            fix="name a file of YAML (.yaml) or TOML (.toml)",
        ) from error
