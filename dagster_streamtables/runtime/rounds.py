"""A recursion without copies, made round by round for a text that Spark cannot run.

Spark has no UNION in WITH RECURSIVE. So plain Spark makes the rows of such a table from its arms as
the user wrote them, a statement for each round, and the text then reads them from a view. Nothing
of the compiler's rules takes part: the text stays the independent oracle of the compiled path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler import Text, read
from dagster_streamtables.compiler.spark import DIALECT
from dagster_streamtables.runtime.sources import Relations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APART = 8
"""Rounds whose rows are kept apart: a statement names all of them."""


def runnable(sql: str, relations: Relations, *, limit: int) -> str:
    """The text with each such recursion exchanged for its rows; as it is where it has none.

    Args:
        sql: Over views of this session.
        relations: Makes views.
        limit: Of rows that may come to this process.
    """
    while True:
        text = read(sql)
        table = next(_tables(text.tree), None)
        if table is None:
            return sql
        start, end = _body(text, table.cte)
        sql = f"{sql[:start]}SELECT * FROM {_rows(table, relations, limit)}{sql[end:]}"


@dataclass(frozen=True)
class _Table:
    """A common table expression that reads itself by UNION."""

    cte: exp.CTE
    before: list[exp.CTE]
    """Those that it may read."""

    @property
    def name(self) -> str:
        return self.cte.alias

    @property
    def columns(self) -> list[str]:
        return self.cte.alias_column_names or self.arms[0].named_selects

    @property
    def arms(self) -> list[exp.Query]:
        return list(_arms(self.cte.this, self.name))

    def statement(self, arms: list[exp.Query], itself: str = "") -> str:
        """The rows of some arms, without copies, with a view in place of the table itself."""
        rows = " UNION ALL ".join(f"({self._over(arm, itself)})" for arm in arms)
        names = ", ".join(
            exp.to_identifier(name, quoted=True).sql(DIALECT) for name in self.columns
        )
        before = exp.With(expressions=[each.copy() for each in self.before], recursive=True)
        head = f"{before.sql(DIALECT)} " if self.before else ""
        return f"{head}SELECT DISTINCT * FROM ({rows}) AS st_arms({names})"

    def _over(self, arm: exp.Query, itself: str) -> str:
        arm = arm.copy()
        for mention in list(arm.find_all(exp.Table)):
            if _is(mention, self.name):
                mention.set("alias", mention.args.get("alias") or exp.TableAlias(this=mention.this))
                mention.set("this", exp.to_identifier(itself.strip("`"), quoted=True))
        return arm.sql(DIALECT)


def _rows(table: _Table, relations: Relations, limit: int) -> str:
    """The name of a view of all its rows."""
    steps = [arm for arm in table.arms if _mentions(arm, table.name)]
    bases = [arm for arm in table.arms if arm not in steps]
    first = relations.sql(table.statement(bases))
    new = relations.made(first, limit=limit)
    if new is None:
        return relations.named(first)
    known = [new]
    while new is not None:
        if len(known) == _APART:
            known = [relations.made(_all(known, relations), limit=limit) or new]
        made = table.statement(steps, new)
        unknown = "".join(f" EXCEPT SELECT * FROM {each}" for each in known)
        new = relations.made(relations.sql(made + unknown), limit=limit)
        known += [new] if new is not None else []
    return relations.named(_all(known, relations))


def _all(known: list[str], relations: Relations) -> DataFrame:
    return relations.sql(" UNION ALL ".join(f"SELECT * FROM {each}" for each in known))


def _tables(tree: exp.Expr) -> Iterator[_Table]:
    for clause in tree.find_all(exp.With):
        around = _seen(clause)
        for i, cte in enumerate(clause.expressions):
            query = cte.this
            by_union = isinstance(query, exp.Union) and query.args["distinct"]
            if by_union and _mentions(query, cte.alias):
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
