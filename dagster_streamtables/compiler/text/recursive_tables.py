"""Split a recursive common table expression into the statements of its rounds.

The branches stay as the user wrote them, except that a view's name replaces the table's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, quote
from dagster_streamtables.compiler.text.strict_parser import rounds_of
from dagster_streamtables.compiler.text.table_mentions import definitions_before
from dagster_streamtables.compiler.text.token_edits import closing


@dataclass(frozen=True)
class RecursiveTable:
    """A recursive common table expression."""

    text: Text
    cte: exp.CTE
    before: list[exp.CTE]
    """The common table expressions that it may read."""

    @property
    def name(self) -> str:
        return self.cte.alias

    @property
    def rounds(self) -> int | None:
        """Rounds that its text allows (MAX RECURSION LEVEL)."""
        return rounds_of(self.cte)

    @property
    def distinct(self) -> bool:
        """Whether duplicates are removed: UNION, not UNION ALL."""
        return bool(self.cte.this.args["distinct"])

    @property
    def columns(self) -> list[str]:
        """Its columns; none if only Spark knows them, as of a base with a star."""
        named = self.cte.alias_column_names
        outputs = self.arms[0].selects
        known = all(
            isinstance(each, exp.Alias | exp.Column) and not each.is_star for each in outputs
        )
        return named or (self.arms[0].named_selects if known else [])

    @property
    def arms(self) -> list[exp.Query]:
        return list(_arms(self.cte.this, self.name))

    def statement(
        self, arms: list[exp.Query], itself: str = "", columns: Sequence[str] = ()
    ) -> str:
        """The rows of some branches, with a view instead of the table itself. Its columns have the
        names in the text, by default."""
        rows = " UNION ALL ".join(f"({self._over(arm, itself)})" for arm in arms)
        names = ", ".join(map(quote, columns or self.columns))
        kind, named = "DISTINCT " * self.distinct, f"({names})" if names else ""
        return f"{self._head(self.before)}SELECT {kind}* FROM ({rows}) AS st_arms{named}"

    @property
    def full_statement(self) -> str:
        """All its rows, as a statement for Spark to analyze; Spark rejects UNION in it."""
        return f"{self._head([*self.before, self.cte])}SELECT * FROM {quote(self.name)}"

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

    @property
    def has_limit(self) -> bool:
        """Whether a LIMIT in the text may need fewer than all rows."""
        return self.text.tree.find(exp.Limit) is not None

    def replace_definition(self, rows: str) -> str:
        """The text with the query of the table replaced by a view."""
        sql = self.text.sql
        start, end = _body(self.text, self.cte)
        return f"{sql[:start]}SELECT * FROM {rows}{sql[end:]}"

    @property
    def steps(self) -> list[exp.Query]:
        """The branches that read the table itself."""
        return [arm for arm in self.arms if _mentions(arm, self.name)]

    @property
    def bases(self) -> list[exp.Query]:
        """The branches that do not read the table itself."""
        return [arm for arm in self.arms if not _mentions(arm, self.name)]


def recursive_table(text: Text) -> RecursiveTable | None:
    """The first common table expression of a text that reads itself."""
    for clause in text.tree.find_all(exp.With):
        for cte in clause.expressions if clause.recursive else ():
            if isinstance(cte.this, exp.Union) and _mentions(cte.this, cte.alias):
                return RecursiveTable(text, cte, definitions_before(cte))
    return None


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
    """The start and stop of a common table expression's query, between its parentheses."""
    named = cte.args["alias"].this.meta["end"] + 1
    opening = next(each.opening for each in text.definitions if each.stop == named)
    return text.tokens[opening].end + 1, text.tokens[closing(text.tokens, opening)].start
