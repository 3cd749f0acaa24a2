"""Declarations of replications in a file, YAML or TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.from_lake import FromLake
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import KINDS, Replication
from dagster_streamtables.setting.text import seconds_in

_RENAMED = {"target_schema": "schema", "copy_data": "copy"}
"""As in the YAML of a component."""
_OWN = tuple(each.name for each in fields(Replication) if each.name not in ("name", "publisher"))


def read_replications(file: str | Path) -> list[Replication]:
    """The replications that a file declares, in its order.

    It has a list ``replications``, each with a `name`, `postgres` (an address) or `lake` (a root),
    and the fields of `FromPostgres`, `FromLake` and `Replication`; the schema of the targets is
    `target_schema`.

    Raises:
        InvalidDefinition: The file cannot be read, or declares what is not possible.
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
    """A replication from plain values.

    Args:
        values: As in a file.
        place: Where they are from, for errors.

    Raises:
        InvalidDefinition: They are not those of a replication.
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
    """The plain values that `declaration` makes the replication from."""
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
            f'"{text}" is no duration', where=place, fix="write a number and a unit: 12h or 7d"
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
