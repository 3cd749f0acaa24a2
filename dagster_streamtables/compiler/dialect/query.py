"""`Query`: a query that is being translated; where its rules ask for kinds and refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.dialect.inferred_types import Kind, Kinds
from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition

_ELSEWHERE = "write this part as a view in Spark SQL"


class UnknownType(InvalidDefinition):
    """What a word means depends on a type, and the columns that would tell it were not given."""


@dataclass(frozen=True)
class Query:
    """A query in the dialect that it is written in."""

    dialect: str
    text: Text
    kinds: Kinds

    def shown(self, node: exp.Expr) -> str:
        """The node as a message calls it."""
        if isinstance(node, exp.Anonymous):
            return f"{node.name.lower()}()"
        sql = node.sql(self.dialect)
        called = re.match(r"(\w+)\(", sql)
        if called and isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
            return f"{called[1].lower()}()"
        if sql.lower() not in self.text.sql.lower():
            return "the expression"  # printed, it is no longer as its author wrote it
        return f'"{sql if len(sql) <= 40 else sql[:37] + "..."}"'

    def refusal(self, node: exp.Expr, why: str, fix: str, *, called: str = "") -> InvalidDefinition:
        """That a node has no exact translation: its place in the text, the reason, the rewrite."""
        return InvalidDefinition(
            f"{called or self.shown(node)} cannot be translated from {self.dialect}",
            where=place(node, self.text),
            why=why,
            fix=fix or _ELSEWHERE,
        )

    def unlisted(self, node: exp.Expr) -> InvalidDefinition:
        """That nothing is known of a node."""
        return self.refusal(
            node,
            "whether Spark SQL has it with exactly this meaning is not known",
            f"write it in other words, or {_ELSEWHERE.removeprefix('write ')}",
        )

    def kind(self, node: exp.Expr | None) -> Kind:
        return self.kinds[node]

    def require(
        self, node: exp.Expr, of: exp.Expr, kinds: Iterable[Kind], why: str, fix: str
    ) -> Kind:
        """The kind of `of`, on which the meaning of `node` depends.

        Raises:
            UnknownType: It cannot be told.
            InvalidDefinition: It is none of `kinds`.
        """
        kind = self.kind(of)
        if kind in kinds:
            return kind
        error = self.refusal(node, f"{self.shown(of)} is {kind.value}, and {why}", fix)
        if kind is Kind.UNKNOWN:
            raise error.changed(UnknownType)
        raise error


Rule = Callable[[exp.Expr, Query], exp.Expr | None]
"""A node → what stands in its place, or None where it stays; raises where there is nothing exact.
Its operands are translated already; their kinds are still those of the query as written."""

Rules = Mapping[type[exp.Expr], Rule]


def literal_int(node: exp.Expr | None) -> int | None:
    """The value of a whole number in the text."""
    if isinstance(node, exp.Neg):
        value = literal_int(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Literal) and not node.is_string and node.is_int:
        return int(node.name)
    return None


def literal_text(node: exp.Expr | None) -> str | None:
    """The value of a string in the text."""
    if isinstance(node, exp.Literal) and node.is_string:
        return node.name
    return None


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of a function of Spark's, printed as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))
