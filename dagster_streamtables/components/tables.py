"""Stream tables and views that are written in the YAML itself."""

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.
import linecache
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.components.fields import about
from dagster_streamtables.errors import Place, StreamTablesError
from dagster_streamtables.orchestration.declare.header import read_setting
from dagster_streamtables.orchestration.declare.load import BrokenTable, Declared, declare
from dagster_streamtables.runtime.model.stream_table import (
    CdcMode,
    Mode,
    OnManualWrite,
    OnSchemaChange,
)


@dataclass
class TableFields(dg.Resolvable):
    """A stream table: a name, one SELECT, and the settings that a `.sql` file has in its header."""

    name: Annotated[str, about(description="As queries say it.", examples=["mart.revenue"])]
    query: Annotated[
        str,
        about(
            description="One SELECT. Every column of its result needs a name.",
            examples=["SELECT customer, SUM(amount) AS total FROM sales.orders GROUP BY customer"],
        ),
    ]
    schedule: Annotated[
        str | None,
        about(
            description="How fresh: a duration, a cron expression, or CALCULATED, as fresh as the "
            "tightest table that reads this one.",
            examples=["5m", "0 6 * * *", "@hourly"],
        ),
    ] = None
    timezone: Annotated[str, about(description="Where a cron expression's hours are.")] = "UTC"
    mode: Annotated[
        Mode,
        about(
            description="By the change of its query, by running it again whenever a source moved, "
            "or whichever is possible and cheaper."
        ),
    ] = Mode.DIFFERENTIAL
    description: Annotated[str, about(description="Shown above the SQL.")] = ""
    owners: Annotated[
        Sequence[str],
        about(
            description="E-mail addresses and teams.",
            examples=[["team:finance", "ann@example.com"]],
        ),
    ] = ()
    tags: Annotated[
        dict[str, str | int | float | bool] | None,
        about(description="Tags of the asset.", examples=[{"tier": "gold"}]),
    ] = None
    group: Annotated[str, about(description="The group of the asset.")] = ""
    dialect: Annotated[
        str,
        about(
            description="The SQL dialect of the query.", examples=["spark", "postgres", "duckdb"]
        ),
    ] = "spark"
    session_timezone: Annotated[
        str, about(description="Where the query's days and hours begin.")
    ] = "UTC"
    differential_max_change_ratio: Annotated[
        float,
        about(
            description="Recompute past this part of changed rows, beyond 5,000; 0 never, 1 always."
        ),
    ] = 0.15
    on_schema_change: Annotated[
        OnSchemaChange,
        about(description="When columns that the query uses are others than before."),
    ] = OnSchemaChange.REINITIALIZE
    on_manual_write: Annotated[
        OnManualWrite,
        about(description="When somebody else changed rows of the table: repair it, or refuse."),
    ] = OnManualWrite.REPAIR
    cdc_mode: Annotated[CdcMode, about(description="Where changes of a source are read from.")] = (
        CdcMode.AUTO
    )
    initialize: Annotated[
        bool,
        about(
            description="Whether the sensor makes the table when it is new; else it waits for the "
            "first refresh by hand."
        ),
    ] = True
    max_consecutive_errors: Annotated[
        int,
        about(
            description="So many errors in a row that only a person can mend suspend the table; 0 "
            "for never."
        ),
    ] = 3
    max_recursion_levels: Annotated[
        int, about(description="A recursion that goes deeper is stopped with an error.")
    ] = 1_000
    max_recursion_rows: Annotated[
        int, about(description="A recursion that makes more rows is stopped with an error.")
    ] = 1_000_000


@dataclass
class ViewFields(dg.Resolvable):
    """A query under a name that other queries may use; nothing is stored."""

    name: Annotated[str, about(description="As queries say it.")]
    query: Annotated[str, about(description="One SELECT.")]
    columns: Annotated[
        Sequence[str] | None,
        about(description="The names of its columns, if they are not those of the query."),
    ] = None
    dialect: Annotated[str, about(description="The SQL dialect of the query.")] = "spark"
    description: Annotated[str, about(description="Shown with the tables that read it.")] = ""


def resolve_tables(context: dg.ResolutionContext, models: Sequence[Any]) -> list[Declared]:
    """Each table, with the line of the YAML in which its query begins; what cannot be is a broken
    one, so that the others can be used."""
    return [_table(context.at_path(place), model) for place, model in enumerate(models)]


def resolve_views(context: dg.ResolutionContext, models: Sequence[Any]) -> list[View]:
    """
    Raises:
        InvalidDefinition: A view that cannot be; whichever tables read it would be others.
    """
    return [_view(context.at_path(place), model) for place, model in enumerate(models)]


def _table(context: dg.ResolutionContext, model: Any) -> Declared:
    values = _values(context, TableFields, model)
    name, query = str(values.pop("name")), str(values.pop("query"))
    if "tags" in values:  # as YAML has them: 1, true
        values["tags"] = {key: str(value) for key, value in values["tags"].items()}
    file, line = _place(context, "query")
    try:
        settings = {key: read_setting(key, value) for key, value in values.items()}
    except StreamTablesError as error:
        error = error.changed(where=Place(line, 1, file=file)) if file else error
        return BrokenTable(name, error.about(name), query, file, line)
    return declare(name, query, **settings, file=file, line=line)


def _view(context: dg.ResolutionContext, model: Any) -> View:
    file, line = _place(context, "query")
    return View(**_values(context, ViewFields, model), file=file, line=line)


def _values(
    context: dg.ResolutionContext, kind: type[TableFields | ViewFields], model: Any
) -> dict[str, Any]:
    """What is written, with its templates filled in; what is not, or null, is left out."""
    written: Mapping[str, Any] = model.model_dump(exclude_unset=True)
    known = [field.name for field in fields(kind) if field.name in written]
    found = {key: context.at_path(key).resolve_value(written[key]) for key in known}
    return {key: value for key, value in found.items() if value is not None}


def _place(context: dg.ResolutionContext, key: str) -> tuple[str | None, int]:
    tree = context.source_position_tree
    if tree is None:
        return None, 1
    position, _ = tree.lookup_closest_and_path([*context.path, key], None)
    file, line = position.filename, position.start.line
    # What stands after `query: |` begins a line below.
    is_block = re.search(rf"\b{key}:\s*[|>]", linecache.getline(file, line)) is not None
    return file, line + is_block
