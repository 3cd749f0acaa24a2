"""The user's own query, run by plain Spark over versions of its tables.

Its recursions are run round by round instead of with Spark's WITH RECURSIVE, which has no UNION, is
limited in depth by its session, and holds all rounds in memory; see `fixpoint`. Plain Spark
computes each round from the branches as the user wrote them, and the query reads the rows from a
view. Without rules of the compiler, the query remains an independent oracle of the compiled path.
For UNION ALL, the rounds have the types of Spark's analysis of the whole recursion.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    RecursionLimits,
    RecursiveTable,
    Text,
    read,
    recursive_table,
)
from dagster_streamtables.errors import InvalidDefinition, RunawayRecursion
from dagster_streamtables.runtime.compute.spark_relations import Relations
from dagster_streamtables.runtime.delta.delta_log import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APART = 8
"""Number of rounds whose rows are kept separately: a statement names all of them."""


def runnable(sql: str, relations: Relations, *, limit: int, recursion: RecursionLimits) -> str:
    """A query over views, with each recursion replaced by its rows; unchanged if it has none.

    `limit` is the number of rows that may come to this process.

    Raises:
        RunawayRecursion: A recursion exceeds its limits.
    """
    while True:
        try:
            table = recursive_table(read(sql))
        except InvalidDefinition:  # a query that only Spark can parse, Spark has to run
            return sql
        if table is None:
            return sql
        try:
            rows = _Rounds(table, relations, limit, recursion).rows()
        except RunawayRecursion:
            # Spark ends a recursion when a LIMIT needs no more rows.
            if table.distinct or not table.has_limit:
                raise
            return sql
        sql = table.replace_definition(rows)


@dataclass(frozen=True)
class _Rounds:
    table: RecursiveTable
    relations: Relations
    limit: int
    recursion: RecursionLimits

    def rows(self) -> str:
        """The name of a view of all rows."""
        table, steps = self.table, self.table.steps
        in_types = self._types()
        first = rows = in_types(self._sql(table.statement(table.bases)))
        known: list[str] = []
        total = 0
        for level in itertools.count():
            new, count = self._materialize(rows, self.recursion.rows - total)
            if new is None:
                return self.relations.create_view(self._all(known) if known else first)
            total += count
            self.recursion.require(level, total, table.name, table.rounds)
            known.append(new)
            if len(known) == _APART:
                known = [self._materialize(self._all(known))[0] or new]
            following = table.statement(steps, new, first.columns)
            for each in known if table.distinct else ():
                following += f" EXCEPT SELECT * FROM {each}"
            rows = in_types(self._sql(following))
        raise AssertionError("rounds are counted without an end")

    def _sql(self, statement: str) -> DataFrame:
        """The rows of a statement, whose own recursions run in this round."""
        inside = runnable(statement, self.relations, limit=self.limit, recursion=self.recursion)
        return self.relations.sql(inside)

    def _types(self) -> Callable[[DataFrame], DataFrame]:
        """For UNION ALL: casts rows to Spark's types of the recursion. For UNION: no cast."""
        if self.table.distinct:
            return lambda rows: rows
        schema = self.relations.sql(self.table.full_statement).schema
        return lambda rows: rows.to(schema)

    def _materialize(self, rows: DataFrame, most: int | None = None) -> tuple[str | None, int]:
        return self.relations.materialize(rows, limit=self.limit, most=most)

    def _all(self, known: list[str]) -> DataFrame:
        return self.relations.sql(" UNION ALL ".join(f"SELECT * FROM {each}" for each in known))


_RELATION = re.compile(r"^[\s:|+-]*'?UnresolvedRelation \[([^\]]*)\]", re.MULTILINE)


def rows_of(
    text: Text,
    tables: Mapping[str, Snapshot],
    now: str,
    relations: Relations,
    *,
    limit: int,
    recursion: RecursionLimits,
) -> DataFrame:
    """The rows of a query over versions of its tables, at a time. Other arguments: see `runnable`.

    Raises:
        InvalidDefinition: Spark reads a table that is not among `tables`.
    """
    relations.query = asked = relations.over(text, tables, now).as_subquery()
    sql = runnable(asked.sql, relations, limit=limit, recursion=recursion)
    if not text.has_consistent_tables:
        _require_same_tables(sql, text, relations)
    return relations.sql(sql)


def _require_same_tables(sql: str, text: Text, relations: Relations) -> None:
    """Check that Spark's parser finds the same tables as the tokens of a text: the changes of an
    overlooked table would never be read."""
    [[explained]] = relations.spark.sql(f"EXPLAIN EXTENDED {sql}").collect()
    parsed = str(explained).partition("== Analyzed Logical Plan ==")[0]
    found = {name.lower() for name in _RELATION.findall(parsed)}
    defined = {each.name.lower() for each in text.definitions}
    unknown = sorted(name for name in found if name not in defined | relations.views)
    if unknown:
        raise InvalidDefinition(
            f'Spark reads "{unknown[0].replace(", ", ".")}" and nothing follows it',
            why=f"the tables that were found in the query are: {', '.join(text.sources)}",
            fix="write FROM and the name of the table in a simpler form",
        )
