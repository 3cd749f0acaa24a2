"""Texts without a type beside numbers: in Postgres they are of the type of the number.

Spark makes floats of both sides, or compares as floats, and ``x / '2'`` is of no known type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.inferred_types import Kinds

_SIDES = (
    exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.In, exp.Between,
)  # fmt: skip
_FORMS = {
    Kind.INT: r"\d{1,9}", Kind.BIGINT: r"\d{1,18}", Kind.DECIMAL: r"\d{1,20}(\.\d{1,18})?",
    Kind.FLOAT: r"\d+(\.\d*)?(e[+-]?\d+)?", Kind.DOUBLE: r"\d+(\.\d*)?(e[+-]?\d+)?",
}  # fmt: skip
_FLOATS = {Kind.FLOAT: "REAL", Kind.DOUBLE: "DOUBLE PRECISION"}


def type_texts(tree: exp.Query, columns: Mapping[str, Mapping[str, str]]) -> None:
    """Give constant texts beside a number its type.

    >>> from dagster_streamtables.compiler.text.query_text import read
    >>> tree = read("SELECT x + '-5', '0.10' < n FROM t", "postgres").tree
    >>> type_texts(tree, {"t": {"x": "int", "n": "decimal(10,2)"}})
    >>> tree.sql("postgres")
    'SELECT x + -5, 0.10 < n FROM t'
    """
    found = [node for node in tree.find_all(*_SIDES) if any(map(_is_text, _sides(node)))]
    if not found:
        return
    kinds = Kinds(tree, columns, "postgres")
    for node in found:
        texts = [each for each in _sides(node) if _is_text(each)]
        others = {kinds[each] for each in _sides(node) if not _is_text(each)}
        if len(others) == 1 and (kind := others.pop()) in _FORMS:
            for text in texts:
                if re.fullmatch(f"[+-]?{_FORMS[kind]}", text.name):
                    text.replace(_number_literal(text, kind))


def _sides(node: exp.Expr) -> Iterator[exp.Expr]:
    names = ("this", "expression", "low", "high")
    yield from (each for name in names if isinstance(each := node.args.get(name), exp.Expr))
    yield from node.args.get("expressions") or ()


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _number_literal(text: exp.Expr, kind: Kind) -> exp.Expr:
    if kind in _FLOATS:
        return exp.Cast(this=text.copy(), to=exp.DataType.build(_FLOATS[kind], dialect="postgres"))
    number = exp.Literal.number(text.name.lstrip("+-"))
    number.meta.update(text.meta)
    return exp.Neg(this=number) if text.name.startswith("-") else number
