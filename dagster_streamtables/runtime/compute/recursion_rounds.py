"""The recursions of a text, made round by round, and not by Spark's own WITH RECURSIVE.

Spark's has no UNION, goes no deeper than its session allows, and holds all rounds in memory, see
`fixpoint`. So plain Spark makes the rows of such a table from its arms as the user wrote them, a
statement for each round, and the text then reads them from a view. Nothing of the compiler's rules
takes part: the text stays the independent oracle of the compiled path.

What Spark takes, it says itself: where there are no copies to leave out, it analyses the text as it
is written, and the rounds have the types that it gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    RecursionLimits,
    RecursiveTable,
    read,
    recursive_table,
)
from dagster_streamtables.errors import InvalidDefinition, RunawayRecursion
from dagster_streamtables.runtime.compute.relations import Relations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APART = 8
"""Rounds whose rows are kept apart: a statement names all of them."""


def runnable(sql: str, relations: Relations, *, limit: int, recursion: RecursionLimits) -> str:
    """The text with each recursion exchanged for its rows; as it is where it has none.

    Args:
        sql: Over views of this session.
        relations: Makes views.
        limit: Of rows that may come to this process.
        recursion: How far a recursion may go.

    Raises:
        RunawayRecursion: One goes further.
    """
    while True:
        try:
            text = read(sql)
        except InvalidDefinition:  # what only Spark can read, it has to run
            return sql
        table = recursive_table(text)
        if table is None:
            return sql
        try:
            rows = _Rounds(table, relations, limit, recursion).rows()
        except RunawayRecursion:
            # Spark ends a recursion of which a LIMIT needs no more.
            if table.distinct or not table.is_limited:
                raise
            return sql
        sql = table.exchanged(rows)


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
        first = asked = in_types(self.relations.sql(table.statement(table.bases)))
        known: list[str] = []
        total = 0
        for level in itertools.count():
            new, count = self._made(asked, self.recursion.rows - total)
            if new is None:
                return self.relations.named(self._all(known) if known else first)
            total += count
            self.recursion.require(level, total, table.name)
            known.append(new)
            if len(known) == _APART:
                known = [self._made(self._all(known))[0] or new]
            following = table.statement(steps, new) + self._without(known)
            asked = in_types(self.relations.sql(following))
        raise AssertionError("rounds are counted without an end")

    def _without(self, known: list[str]) -> str:
        """What leaves out the rows that are known, where there are no copies."""
        if not self.table.distinct:
            return ""
        return "".join(f" EXCEPT SELECT * FROM {each}" for each in known)

    def _types(self) -> Callable[[DataFrame], DataFrame]:
        """Casts rows to the types that Spark gives the table; without copies, as they come."""
        if self.table.distinct:
            return lambda rows: rows
        schema = self.relations.sql(self.table.written).schema
        return lambda rows: rows.to(schema)

    def _made(self, rows: DataFrame, most: int | None = None) -> tuple[str | None, int]:
        return self.relations.made(rows, limit=self.limit, most=most)

    def _all(self, known: list[str]) -> DataFrame:
        return self.relations.sql(" UNION ALL ".join(f"SELECT * FROM {each}" for each in known))
