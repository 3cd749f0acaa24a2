"""`change_assets` in YAML: functions of the project that receive what changed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated, Any, Literal

import dagster as dg

from dagster_streamtables.changes.output.envelope import Debezium, Envelope, Upsert
from dagster_streamtables.changes.subscribe import DEADLINE
from dagster_streamtables.compiler import View
from dagster_streamtables.components.yaml_settings import read, yaml_model, yaml_values
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.changes.change_asset import change_asset
from dagster_streamtables.setting import NON_EMPTY, Display, Range, normalize_fields

_ENVELOPES: dict[str, type[Envelope]] = {"upsert": Upsert, "debezium": Debezium}


@dataclass(frozen=True)
class ChangeAssetSettings:
    """A function that receives what changed in a relation, as an asset."""

    function: Annotated[str, NON_EMPTY, Display(("project.sinks.search_index",))]
    """The function, by its module and name. It has a parameter `changes`."""
    relation: Annotated[str, NON_EMPTY, Display(("mart.revenue",))]
    """What is followed: a source, a stream table or a view by its name, a path, or a SELECT."""
    key: Annotated[tuple[str, ...], Display((("id",),))] = ()
    """The columns of the envelope's key."""
    envelope: Literal["upsert", "debezium"] | None = None
    """The shape of the rows. With a `key`, the default is `upsert`; without one, each row has the
    number of copies that came or went."""
    order_by: Annotated[tuple[str, ...], Display((("id",),))] = ()
    """The order of rows within a timestamp."""
    slot: Annotated[str | None, Display(default="the asset key, with __ between its parts")] = None
    """The name of the slot."""
    as_of: Annotated[str | None, Display(("2026-01-31T12:00:00Z",), default="now")] = None
    """Where a new slot begins."""
    snapshot: bool = True
    """Whether a new slot begins with all rows as of `as_of`, or after them."""
    clock: Literal["version", "ms"] | None = None
    """What timestamps count: the versions of the only source, or milliseconds."""
    max_rows: Annotated[int, Range(1)] | None = None
    """A run takes no further timestamp once it has so many rows."""
    on_history_lost: Literal["error", "resnapshot"] = "error"
    """Whether to fail, or begin again with a snapshot, if what comes next can no longer be read."""
    recompute: bool = False
    """Whether a query whose change cannot be computed may be run again, and compared."""
    dialect: str = "spark"
    """The SQL dialect of a SELECT."""
    session_timezone: str = "UTC"
    """The time zone of the days and hours of a SELECT, or of a view."""
    deadline: Annotated[timedelta, Range(0, above=True)] | None = DEADLINE
    """The slot is let go if nobody, not even the sensor, has used it for so long."""
    stored_token: Annotated[str | None, Display(("project.sinks.last_token",))] = None
    """A function that returns the token that the sink stored last with its rows, or None."""
    name: Annotated[str | None, Display(default="the name of the function")] = None
    """The name of the asset."""
    key_prefix: Annotated[tuple[str, ...], Display((("search",),))] = ()
    """The first parts of the asset key."""
    group_name: str | None = None
    """The group of the asset."""
    description: Annotated[str | None, Display(default="the docstring of the function")] = None
    """What Dagster shows."""

    def __post_init__(self) -> None:
        normalize_fields(self)
        if self.envelope is not None and not self.key:
            raise InvalidDefinition(
                f'the envelope "{self.envelope}" of {self.function} has no key',
                fix="name its columns, as in key: [id]",
            )

    def asset(self, resource_key: str, views: Sequence[View]) -> dg.AssetsDefinition:
        """The asset, with the imported function.

        Args:
            resource_key: The key of the resource.
            views: Queries that `relation` may name like tables, or be.

        Raises:
            InvalidDefinition: There is no such function, or it cannot be imported.
        """
        taken = ("function", "key", "envelope", "stored_token", "description")
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        said = {name: value for name, value in given.items() if name not in taken}
        if self.key:
            said["envelope"] = _ENVELOPES[self.envelope or "upsert"](self.key)
        if self.stored_token is not None:
            said["stored_token"] = _import_function(self.stored_token)
        if self.description is not None:
            said["description"] = self.description
        made = change_asset(**said, views=views, resource_key=resource_key)
        return made(_import_function(self.function))


def _resolve_change_assets(
    context: dg.ResolutionContext, models: Sequence[Any]
) -> list[ChangeAssetSettings]:
    found: list[ChangeAssetSettings] = []
    for place, model in enumerate(models):
        said = yaml_values(context.at_path(place), ChangeAssetSettings, model)
        found.append(ChangeAssetSettings(**read(ChangeAssetSettings, said)))
    return found


def _import_function(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidDefinition(
            f"the function {path} cannot be imported",
            why=str(error),
            fix="write the module and the name of the function, as in project.sinks.search_index",
        ) from error


CHANGE_ASSETS = dg.Resolver(
    _resolve_change_assets,
    model_field_type=Sequence[yaml_model(ChangeAssetSettings)],  # type: ignore[misc]
    description="Functions of the project that receive what changed, as assets.",
)
