"""From a definition and the columns of its sources: its plan, columns and `Explanation`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    UNKNOWN,
    OperatorLine,
    Plan,
    QueryPlan,
    Text,
    blame_view,
    compile_query,
    place_of_output,
    require_maintainable,
    require_storable,
    type_text,
)
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, UnsupportedQuery
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from deltalake import DeltaTable


CHANGED_AT_TYPE = "timestamp"
_HIDDEN = "__st_"


def compile_table(
    table: StreamTable, text: Text, columns: Mapping[str, Mapping[str, str]]
) -> QueryPlan:
    """The plan of a stream table.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names what does not exist; the message
            names the view that is to blame.
    """
    with table.locate_errors():
        try:
            return _plan(text, tuple((name, tuple(each.items())) for name, each in columns.items()))
        except InvalidDefinition as error:
            found = blame_view(error, {view.name: view for view in table.views}, columns)
            if table.is_differential_only:
                raise found from None
            # Only Spark has to understand a query that runs as written.
            raise found.with_parts(UnsupportedQuery) from None


def stored_plan(
    table: StreamTable, text: Text, columns: Mapping[str, Mapping[str, str]]
) -> QueryPlan:
    """The plan of a stream table whose rows are to be stored.

    Raises:
        InvalidDefinition: As `compile_table`; no Delta table can have a column of its names; or the
            query returns the column `changed_at`.
    """
    plan = compile_table(table, text, columns)
    with table.locate_errors():
        require_storable(plan.schema, plan.text)
        require_unused_name(table.changed_at, plan.schema, plan.text)
    return plan


def refuse_without_columns(table: StreamTable) -> None:
    """
    Raises:
        InvalidDefinition: The query cannot be maintained, whatever the columns of its sources.
    """
    # The meaning of other dialects depends on types; other modes run the query again.
    if table.dialect == "spark" and table.is_differential_only:
        with table.locate_errors():
            require_maintainable(table.text())


def require_unused_name(changed_at: str, returned: Iterable[str], text: Text | None = None) -> None:
    """
    Raises:
        InvalidDefinition: The query returns a column of the name that `changed_at` gives to one.
    """
    for name in returned:
        if name.lower() == changed_at.lower():
            raise InvalidDefinition(
                f'changed_at names the column "{changed_at}", which the query returns',
                where=place_of_output(name, text) if text is not None else "",
                why="the time of a row's last change is a column in addition to those of the "
                "query, and names are unique, ignoring case",
                fix=f'remove "{name}" from the query, or write another name for changed_at',
            )


@functools.lru_cache(maxsize=10_000)
def _plan(text: Text, columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> QueryPlan:
    """Cached: compiling takes longer than a refresh that finds nothing to do. A plan has 60 kB."""
    return compile_query(text, {name: dict(each) for name, each in columns})


def visible_types(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of a table without the hidden ones of a stream table."""
    return {name: columns[name] for name in visible_names(columns)}


def visible_names(names: Iterable[str]) -> list[str]:
    """Names of columns without the hidden ones of a stream table."""
    return [name for name in names if not name.startswith(_HIDDEN)]


def visible_columns(table: DeltaTable) -> list[str]:
    """The columns of a Delta table for its readers, in order.

    For programs that open a stream table with delta-rs:
    ``table.to_pandas(visible_columns(table))``.
    """
    return visible_names(field.name for field in table.schema().fields)


def planned_columns(table: StreamTable, plan: Plan) -> dict[str, str | None]:
    """The columns of a table that does not exist yet, and their types; None for an unknown type."""
    texts = {name: type_text(type_) for name, type_ in plan.schema.items()}
    columns = {name: text if text != UNKNOWN else None for name, text in texts.items()}
    return {**columns, **time_column(table)}


def time_column(table: StreamTable) -> dict[str, str]:
    """The column `changed_at` and its type; empty for a table without it."""
    return {table.changed_at: CHANGED_AT_TYPE} if table.changed_at else {}


def used_columns(plan: Plan | None, name: str, log: TableLog) -> dict[str, str]:
    """The columns that a query uses of a source, spelled as in the log; all without a plan, and if
    the query counts them."""
    there = visible_types(log.columns)
    if plan is None or (isinstance(plan, QueryPlan) and plan.counted):
        return there
    used = plan.columns_of(name)
    return {column: type_ for column, type_ in there.items() if column.lower() in used}


@dataclass(frozen=True)
class ExplainedQuery:
    """One maintained query: the table's own, or that of an intermediate table."""

    name: str
    """The name of the intermediate table; empty for the table's own query."""
    law: str
    """How its change enters the stored rows."""
    reads: tuple[str, ...]
    """Sources and intermediate tables."""
    operators: tuple[OperatorLine, ...]
    """Each with its law, and what its change reads."""


@dataclass(frozen=True)
class Explanation:
    """How a stream table is maintained."""

    table: str
    mode: str
    sources: tuple[str, ...]
    plan: Plan | None = None
    """None if the query is refused."""
    refusal: UnsupportedQuery | None = None
    """Why its change cannot be computed, with the place in its SQL."""

    @property
    def is_differential(self) -> bool:
        """Whether the table follows the change of its sources."""
        return self.plan is not None

    @property
    def queries(self) -> tuple[ExplainedQuery, ...]:
        """The queries of the intermediate tables first, each after those it reads."""
        plans = (*self.plan.intermediates, self.plan) if self.plan is not None else ()
        return tuple(
            ExplainedQuery(each.name, each.law, each.reads, each.operators) for each in plans
        )

    @property
    def change_sql(self) -> str:
        """The SQL of the change if every source changed; empty if it is not maintained."""
        return self.plan.change_sql() if self.plan is not None else ""

    @property
    def place(self) -> QueryPosition | None:
        """The place in the SQL, or in its file, of what is refused."""
        return self.refusal.place if self.refusal is not None else None

    def __str__(self) -> str:
        return self.plan.explain() if self.plan is not None else str(self.refusal)
