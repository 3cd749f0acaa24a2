"""What rules of translation work with: the query under translation, and parts of Spark SQL."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.digits import Digits
from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import Kinds
from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, parser_of
from dagster_streamtables.errors import InvalidDefinition

_SIDES = ("this", "expression", "low", "high")
_ELSEWHERE = "write this part as a view in Spark SQL"


class UnknownType(InvalidDefinition):
    """The translation depends on a type, but the columns that decide it were not given."""


@dataclass(frozen=True)
class Query:
    """A query in the dialect that it is written in."""

    dialect: str
    text: Text
    kinds: Kinds
    stored: bool = True
    """Whether its rows are stored; the rows of a view are read on."""
    notes: dict[str, None] = field(default_factory=dict[str, None])
    """How results are represented differently in Spark, as a set in the order of their places."""

    def note(self, text: str) -> None:
        """Record a difference in representation."""
        self.notes[text] = None

    def display_name(self, node: exp.Expr) -> str:
        """The node's name in a message."""
        if isinstance(node, exp.Anonymous):
            return f"{node.name.lower()}()"
        sql = node.sql(parser_of(self.dialect))
        called = re.match(r"(\w+)\(", sql)
        if called and isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
            return f"{called[1].lower()}()"
        if sql.lower() not in self.text.sql.lower():
            return "the expression"  # sqlglot prints it differently from its author
        return f'"{sql if len(sql) <= 40 else sql[:37] + "..."}"'

    def refusal(self, node: exp.Expr, why: str, fix: str, *, called: str = "") -> InvalidDefinition:
        """The error for a node without an exact translation."""
        return InvalidDefinition(
            f"{called or self.display_name(node)} cannot be translated from {self.dialect}",
            where=place(node, self.text),
            why=why,
            fix=fix or _ELSEWHERE,
        )

    def no_rule_error(self, node: exp.Expr) -> InvalidDefinition:
        """The error for a node that no rule covers."""
        why = "it is not known to mean exactly the same in Spark SQL"
        return self.refusal(node, why, _ELSEWHERE)

    def kind(self, node: exp.Expr | None) -> Kind:
        return self.kinds[node]

    def digits(self, node: exp.Expr) -> Digits | None:
        """The digits of a number, before it was rewritten."""
        return self.kinds.digits(node)

    def require(
        self, node: exp.Expr, of: exp.Expr, kinds: Iterable[Kind], why: str, fix: str
    ) -> Kind:
        """The kind of `of`, on which the meaning of `node` depends.

        Raises:
            UnknownType: The kind is not known.
            InvalidDefinition: The kind is none of `kinds`.
        """
        kind = self.kind(of)
        if kind in kinds:
            return kind
        error = self.refusal(node, f"{self.display_name(of)} is {kind.value}, and {why}", fix)
        if kind is Kind.UNKNOWN:
            raise error.with_parts(UnknownType)
        raise error


Rule = Callable[[exp.Expr, Query], exp.Expr | None]
"""A node → its replacement, or None to keep it; raises if there is no exact translation. The node's
operands are already translated; their kinds are still those of the original query."""

Rules = Mapping[type[exp.Expr], Rule]


def refuse_if(
    test: Callable[[exp.Expr, Query], object], why: str, fix: str, *, called: str = ""
) -> Rule:
    """A rule that refuses a node that passes a test, and keeps any other."""

    def rule(node: exp.Expr, query: Query) -> None:
        if test(node, query):
            raise query.refusal(node, why, fix, called=called)

    return rule


def literal_int(node: exp.Expr | None) -> int | None:
    """The value of an integer literal; None for anything else."""
    if isinstance(node, exp.Neg):
        value = literal_int(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Literal) and not node.is_string and node.is_int:
        return int(node.name)
    return None


def literal_text(node: exp.Expr | None) -> str | None:
    """The value of a string literal; None for anything else."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def call(name: str, *arguments: exp.Expr | str | int) -> exp.Anonymous:
    """A call of a Spark function, printed unchanged; texts and numbers become literals."""
    return exp.Anonymous(this=name, expressions=list(map(exp.convert, arguments)))


_APART = (exp.Func, exp.Paren, exp.Column, exp.Literal, exp.Cast, exp.Subquery, exp.Null,
          exp.Window, exp.Filter, exp.Case)  # fmt: skip


@functools.cache
def _parse_template(template: str) -> exp.Expr:
    tree = sqlglot.parse_one(template, dialect=DIALECT)
    for node in tree.walk():
        node.meta.clear()  # places in the template would be taken for those in the query
    return tree


def from_template(template: str, **operands: exp.Expr | str | int) -> exp.Expr:
    """An expression of Spark.

    Args:
        template: In Spark SQL; an operand is named like a column, with an underscore before it.
        operands: What replaces these names: expressions, or the values of literals.

    >>> from_template("_a DIV (_b + 1)", a=exp.column("x") + 1, b=2).sql("spark")
    '((x + 1) DIV (2 + 1))'
    """
    tree = exp.paren(_parse_template(template), copy=True)
    for node in list(tree.find_all(exp.Column)):
        operand = operands.get(node.name[1:]) if node.name.startswith("_") else None
        if operand is not None and not node.table:
            operand = exp.convert(operand)
            alone = isinstance(operand, _APART) or isinstance(node.parent, exp.Func)
            node.replace(operand.copy() if alone else exp.paren(operand))
    return tree.this if isinstance(tree.this, _APART) else tree


def template_rule(
    template: str,
    names: str = "x",
    *,
    needs: tuple[Iterable[Kind], str, str] | None = None,
    **texts: str,
) -> Callable[[exp.Expr, Query], exp.Expr]:
    """A rule that writes a function or an operator as a template over its operands.

    Args:
        template: As in `from_template`.
        names: The name of each operand, one letter, in their order.
        needs: The kinds, the reason and the fix by which `Query.require` checks each operand.
        texts: String literals that the template also names.
    """

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        sides = node.expressions or [node.this, node.expression]
        operands = [each for each in sides if isinstance(each, exp.Expr)]
        if len(operands) != len(names):
            raise query.no_rule_error(node)
        if needs is not None:
            for each in operands:
                query.require(node, each, *needs)
        return from_template(template, **dict(zip(names, operands, strict=True)), **texts)

    return rule


def outer_node(node: exp.Expr, *through: type[exp.Expr]) -> exp.Expr | None:
    """The node around another, past parentheses and nodes of these classes."""
    around = node.parent
    while isinstance(around, (exp.Paren, *through)):
        around = around.parent
    return around


def sides_of(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a comparison, of BETWEEN, or of IN with a list."""
    named = (node.args.get(name) for name in _SIDES)
    return [each for each in named if isinstance(each, exp.Expr)] + list(node.expressions)


def change_sides(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of a comparison, with each operand changed."""
    found = node.copy()
    for name in _SIDES:
        if node.args.get(name):
            found.set(name, change(node.args[name]))
    found.set("expressions", [change(each) for each in node.expressions])
    return found
