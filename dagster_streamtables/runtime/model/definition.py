"""From a definition and the columns of its sources: the plan, and its columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    Plan,
    QueryPlan,
    Text,
    blame_view,
    compile_query,
    require_storable,
    type_text,
)
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable

if TYPE_CHECKING:
    from deltalake import DeltaTable

_HIDDEN = "__st_"


def compiled(table: StreamTable, text: Text, columns: Mapping[str, Mapping[str, str]]) -> QueryPlan:
    """The plan of a stream table.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names what does not exist; the message
            names the view that is to blame.
    """
    with table.blamed():
        return _compiled(table, text, columns)


def stored_plan(
    table: StreamTable, text: Text, columns: Mapping[str, Mapping[str, str]]
) -> QueryPlan:
    """The plan of a stream table whose rows are to be stored.

    Raises:
        InvalidDefinition: As `compiled`, or no Delta table can have a column of its names.
    """
    plan = compiled(table, text, columns)
    with table.blamed():
        require_storable(plan.schema, plan.text)
    return plan


def _compiled(
    table: StreamTable, text: Text, columns: Mapping[str, Mapping[str, str]]
) -> QueryPlan:
    try:
        return _plan(text, tuple((name, tuple(each.items())) for name, each in columns.items()))
    except InvalidDefinition as error:
        found = blame_view(error, {view.name: view for view in table.views}, columns)
        if table.mode is Mode.DIFFERENTIAL:
            raise found from None
        # Only Spark has to understand a query that runs as written.
        raise found.changed(UnsupportedQuery) from None


@functools.lru_cache(maxsize=1024)
def _plan(text: Text, columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> QueryPlan:
    """Cached: compiling takes longer than a refresh that finds nothing to do."""
    return compile_query(text, {name: dict(each) for name, each in columns})


def visible(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of a table without the hidden ones of a stream table."""
    return {name: type_ for name, type_ in columns.items() if not name.startswith(_HIDDEN)}


def visible_columns(table: DeltaTable) -> list[str]:
    """The columns of a Delta table for its readers, in order.

    For programs that open a stream table with delta-rs:
    ``table.to_pandas(visible_columns(table))``.
    """
    return [field.name for field in table.schema().fields if not field.name.startswith(_HIDDEN)]


def known_types(plan: Plan) -> dict[str, str]:
    """The columns of a table that does not exist yet, if the query tells their types."""
    texts = {name: type_text(type_) for name, type_ in plan.schema.items()}
    return {name: text for name, text in texts.items() if text != "UNKNOWN"}


def guessed(plan: Plan) -> dict[str, str]:
    """The columns of a table that does not exist yet.

    If the query does not tell a type, any will do: a refresh compiles again, with the types of the
    stored table.
    """
    known = known_types(plan)
    return {name: known.get(name, "string") for name in plan.schema}


def used_columns(plan: Plan | None, name: str, log: TableLog) -> dict[str, str]:
    """The columns that a query uses of a source, spelled as in the log; all without a plan, and if
    the query counts them."""
    there = visible(log.columns)
    if plan is None or (isinstance(plan, QueryPlan) and plan.counts_columns):
        return there
    used = plan.columns_of(name)
    return {column: type_ for column, type_ in there.items() if column.lower() in used}
