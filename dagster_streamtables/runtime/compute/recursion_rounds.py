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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler import Text, read
from dagster_streamtables.compiler.rewrite.fixpoint import Bound
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition, RunawayRecursion
from dagster_streamtables.runtime.compute.relations import Relations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APART = 8
"""Rounds whose rows are kept apart: a statement names all of them."""


def runnable(sql: str, relations: Relations, *, limit: int, bound: Bound) -> str:
    """The text with each recursion exchanged for its rows; as it is where it has none.

    Args:
        sql: Over views of this session.
        relations: Makes views.
        limit: Of rows that may come to this process.
        bound: How far a recursion may go.

    Raises:
        RunawayRecursion: One goes further.
    """
    while True:
        try:
            text = read(sql)
        except InvalidDefinition:  # what only Spark can read, it has to run
            return sql
        table = next(_tables(text.tree), None)
        if table is None:
            return sql
        start, end = _body(text, table.cte)
        try:
            rows = _Rounds(table, relations, limit, bound).rows()
        except RunawayRecursion:
            # Spark ends a recursion of which a LIMIT needs no more.
            if table.distinct or text.tree.find(exp.Limit) is None:
                raise
            return sql
        sql = f"{sql[:start]}SELECT * FROM {rows}{sql[end:]}"


@dataclass(frozen=True)
class _Table:
    """A common table expression that reads itself."""

    cte: exp.CTE
    before: list[exp.CTE]
    """Those that it may read."""

    @property
    def name(self) -> str:
        return self.cte.alias

    @property
    def distinct(self) -> bool:
        """Whether a row that is made again is left out: UNION, not UNION ALL."""
        return bool(self.cte.this.args["distinct"])

    @property
    def columns(self) -> list[str]:
        return self.cte.alias_column_names or self.arms[0].named_selects

    @property
    def arms(self) -> list[exp.Query]:
        return list(_arms(self.cte.this, self.name))

    def statement(self, arms: list[exp.Query], itself: str = "") -> str:
        """The rows of some arms, with a view in place of the table itself."""
        rows = " UNION ALL ".join(f"({self._over(arm, itself)})" for arm in arms)
        names = ", ".join(map(_quoted, self.columns))
        kind = "DISTINCT " * self.distinct
        return f"{self._head(self.before)}SELECT {kind}* FROM ({rows}) AS st_arms({names})"

    @property
    def written(self) -> str:
        """All its rows, as a statement that Spark analyses; UNION it takes for a mistake."""
        return f"{self._head([*self.before, self.cte])}SELECT * FROM {_quoted(self.name)}"

    def _head(self, tables: list[exp.CTE]) -> str:
        clause = exp.With(expressions=[each.copy() for each in tables], recursive=True)
        return f"{clause.sql(DIALECT)} " if tables else ""

    def _over(self, arm: exp.Query, itself: str) -> str:
        arm = arm.copy()
        for mention in list(arm.find_all(exp.Table)):
            if _is(mention, self.name):
                mention.set("alias", mention.args.get("alias") or exp.TableAlias(this=mention.this))
                mention.set("this", exp.to_identifier(itself.strip("`"), quoted=True))
        return arm.sql(DIALECT)


@dataclass(frozen=True)
class _Rounds:
    table: _Table
    relations: Relations
    limit: int
    bound: Bound

    def rows(self) -> str:
        """The name of a view of all rows."""
        table = self.table
        steps = [arm for arm in table.arms if _mentions(arm, table.name)]
        bases = [arm for arm in table.arms if arm not in steps]
        in_types = self._types()
        first = asked = in_types(self.relations.sql(table.statement(bases)))
        known: list[str] = []
        total = 0
        for level in itertools.count():
            new, count = self._made(asked, self.bound.rows - total)
            if new is None:
                return self.relations.named(self._all(known) if known else first)
            total += count
            self.bound.require(level, total, table.name)
            known.append(new)
            if len(known) == _APART:
                known = [self._made(self._all(known))[0] or new]
            asked = in_types(self.relations.sql(table.statement(steps, new) + self._without(known)))
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


def _tables(tree: exp.Expr) -> Iterator[_Table]:
    for clause in tree.find_all(exp.With):
        around = _seen(clause)
        for i, cte in enumerate(clause.expressions):
            query = cte.this
            if isinstance(query, exp.Union) and _mentions(query, cte.alias) and clause.recursive:
                yield _Table(cte, [*around, *clause.expressions[:i]])


def _seen(clause: exp.Expr) -> list[exp.CTE]:
    """The tables that the queries around a WITH clause have, and that it may read."""
    around = clause.parent.find_ancestor(exp.CTE) if clause.parent is not None else None
    if around is None or not isinstance(around.parent, exp.With):
        return []
    listed = around.parent.expressions
    earlier = listed[: next(i for i, each in enumerate(listed) if each is around)]
    return [*_seen(around.parent), *earlier]


def _arms(query: exp.Expr, name: str) -> Iterator[exp.Query]:
    if isinstance(query, exp.Union) and _mentions(query, name):
        yield from _arms(query.left, name)
        yield from _arms(query.right, name)
    elif isinstance(query, exp.Query):
        yield query


def _mentions(query: exp.Expr, name: str) -> bool:
    return any(_is(table, name) for table in query.find_all(exp.Table))


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(DIALECT)


def _is(table: exp.Table, name: str) -> bool:
    return table.name.lower() == name.lower() and not table.db


def _body(text: Text, cte: exp.CTE) -> tuple[int, int]:
    """Where the query of a common table expression stands, between its parentheses."""
    named = cte.args["alias"].this.meta["end"]
    following = [each for each in text.tokens if each.start > named]
    opening = next(i for i, each in enumerate(following) if each.text.upper() == "AS") + 1
    depth = 0
    for token in following[opening:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return following[opening].end + 1, token.start
    raise AssertionError("the parentheses of a query that was parsed are paired")
