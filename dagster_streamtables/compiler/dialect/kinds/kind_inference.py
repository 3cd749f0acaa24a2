"""Infer the types of the values in a query of another dialect, before it is translated.

The meaning of some operators depends on types: ``a / b`` of two integers is an integer in Postgres
and a fraction in Spark; of two decimals it has different digits in each. A kind, the digits of a
number and the kind of an array's elements are as much of a type as the translation needs, by the
rules of the query's own dialect.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.dialect.kinds import digits
from dagster_streamtables.compiler.dialect.kinds.digits import Digits
from dagster_streamtables.compiler.dialect.kinds.function_kinds import (
    ARRAYS_OF_TEXTS,
    BY_CALL,
    BY_CLASS,
    DATES,
    MOMENTS,
    WHOLE,
    Kind,
)
from dagster_streamtables.compiler.dialect.kinds.origins import Columns, Element, Origin, Origins
from dagster_streamtables.compiler.scope.from_columns import RULES, SPARK

_T = exp.DataType.Type
_OF_TYPE: dict[Any, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.MEDIUMINT), Kind.INT),
    **dict.fromkeys((_T.BIGINT, _T.UINT, _T.INT128), Kind.BIGINT),
    _T.DECIMAL: Kind.DECIMAL,
    _T.FLOAT: Kind.FLOAT,
    _T.DOUBLE: Kind.DOUBLE,
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR, _T.NCHAR, _T.UUID), Kind.STRING),
    _T.BOOLEAN: Kind.BOOL,
    **dict.fromkeys((_T.DATE, _T.DATE32), Kind.DATE),
    **dict.fromkeys((_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ), Kind.INSTANT),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.DATETIME, _T.DATETIME2), Kind.LOCAL),
    **dict.fromkeys((_T.ARRAY, _T.LIST), Kind.ARRAY),
    **dict.fromkeys((_T.JSON, _T.JSONB), Kind.JSON),
    **dict.fromkeys((_T.BINARY, _T.VARBINARY), Kind.BINARY),
    _T.INTERVAL: Kind.INTERVAL,
    _T.TIME: Kind.TIME,
}


class ValueType(NamedTuple):
    """What is known of the type of a value."""

    kind: Kind
    digits: Digits | None = None
    element: Kind | None = Kind.UNKNOWN
    """The kind of an array's elements; None for ``ARRAY[]``, whose elements may have any."""


_UNKNOWN = ValueType(Kind.UNKNOWN)


def type_kind(type_: exp.DataType) -> Kind:
    """The kind of a type in a cast, in a dialect where TIMESTAMP has no zone."""
    return _OF_TYPE.get(type_.this, Kind.OTHER)


def _type_in_spark(type_: str) -> ValueType:
    """The type of a column of a Delta table."""
    try:
        found = exp.DataType.build(type_, dialect="spark")
    except SqlglotError:
        return ValueType(Kind.OTHER)
    kind = _kind_in_spark(found)
    elements = found.expressions if kind is Kind.ARRAY else []
    element = _kind_in_spark(elements[0]) if elements else Kind.UNKNOWN
    return ValueType(kind, digits.OF_KIND.get(kind) or digits.of_type(found), element)


def _kind_in_spark(type_: exp.DataType) -> Kind:
    if type_.is_type(_T.TIMESTAMP):
        return Kind.INSTANT
    return Kind.UNKNOWN if type_.is_type(_T.UNKNOWN) else type_kind(type_)


_SAME = (exp.Min, exp.Max, exp.AnyValue, exp.Abs, exp.Neg, exp.Paren, exp.Alias, exp.Window,
         exp.Filter, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Distinct,
         exp.IgnoreNulls, exp.RespectNulls, exp.Ordered)  # fmt: skip
_SCALES = (Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)
_UNITED = (exp.Coalesce, exp.Greatest, exp.Least, exp.If, exp.Case, exp.Nullif)
DIVIDES_TO_WHOLE = frozenset({"postgres", "redshift", "trino", "presto", "athena", "tsql",
                               "fabric", "sqlite", "teradata", "materialize", "risingwave",
                               "dremio", "drill", "dune"})  # fmt: skip
"""Dialects in which an integer divided by an integer is an integer."""
FRACTIONS_ARE_FLOATS = frozenset({"bigquery", "hive", "sqlite"})
"""Dialects in which 0.1 is a float, not a decimal."""
_LIKE_POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})


class Kinds:
    """The type of each expression of a query as parsed, before it is rewritten."""

    def __init__(self, tree: exp.Query, columns: Columns, dialect: str) -> None:
        self.origins = Origins(tree, columns, RULES.get(dialect, SPARK))
        self._dialect = dialect
        self._types: dict[int, tuple[exp.Expr, ValueType]] = {}
        """By the id of the node, which stays alive here, so that no id is reused."""
        for node in tree.walk():
            self._type(node)

    def __getitem__(self, node: exp.Expr | None) -> Kind:
        return self._type(node).kind

    def digits(self, node: exp.Expr) -> Digits | None:
        """The digits of a number."""
        return self._type(node).digits

    def element(self, array: exp.Expr) -> Kind:
        """The kind of an array's elements."""
        return self._type(array).element or Kind.UNKNOWN

    def carry(self, old: exp.Expr, new: exp.Expr) -> None:
        """Give the replacement of a node the node's type."""
        self._types[id(new)] = new, self._type(old)

    def declare(self, new: exp.Expr, kind: Kind) -> None:
        """Set the kind of a node that a rule made."""
        self._types[id(new)] = new, ValueType(kind)

    def _type(self, node: exp.Expr | None) -> ValueType:
        if node is None:
            return _UNKNOWN
        if id(node) not in self._types:
            self._types[id(node)] = node, _UNKNOWN  # ends the recursion for a recursive query
            self._types[id(node)] = node, self._infer(node)
        return self._types[id(node)][1]

    def _infer(self, node: exp.Expr) -> ValueType:
        if isinstance(node, exp.Column):
            return _common_type([self._of_origin(each) for each in self.origins.of(node)])
        if isinstance(node, exp.Literal):
            return ValueType(self._literal(node), digits.of_literal(node))
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div | exp.IntDiv):
            kind = self._arithmetic(node)
            sides = (self.digits(each) for each in (node.this, node.expression))
            return ValueType(kind, digits.OF_KIND.get(kind) or digits.of_operation(node, *sides))
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
            return ValueType(Kind.BOOL)
        if isinstance(node, exp.Subquery):
            return self._type(node.selects[0]) if len(node.selects) == 1 else _UNKNOWN
        if isinstance(node, _SAME):
            return self._type(node.this if isinstance(node.this, exp.Expr) else None)
        if isinstance(node, _UNITED):
            return self._type_of_any(results(node))
        if isinstance(node, exp.Array):
            element = self._type_of_any(node.expressions).kind if node.expressions else None
            return ValueType(Kind.ARRAY, element=element)
        if isinstance(node, exp.DPipe):
            return self._concat(self._type(node.this), self._type(node.expression))
        if isinstance(node, exp.Anonymous):
            kind = BY_CALL.get(node.name.lower(), Kind.UNKNOWN)
            element = self._element_of_call(node) if kind is Kind.ARRAY else Kind.UNKNOWN
            return ValueType(kind, digits.OF_KIND.get(kind), element)
        kind = next((kind for classes, kind in BY_CLASS if isinstance(node, classes)), None)
        of = self._type(node.this) if isinstance(node.this, exp.Expr) else _UNKNOWN
        kind = kind or self._by_argument(node, of)
        element = of.element if kind is Kind.ARRAY else Kind.UNKNOWN
        return ValueType(kind, self._digits_of_call(node, kind, of), element)

    def _cast(self, node: exp.Cast) -> ValueType:
        kind = type_kind(node.to)
        elements = node.to.expressions if kind is Kind.ARRAY else []
        element = type_kind(elements[0]) if elements else Kind.UNKNOWN
        found = digits.of_type(node.to) or digits.OF_KIND.get(kind)
        if found is None and kind is Kind.DECIMAL:
            floats = self[node.this] in (Kind.STRING, Kind.DOUBLE, Kind.FLOAT)
            found = digits.UNDECLARED if floats else self.digits(node.this)
        return ValueType(kind, found, element)

    def _concat(self, left: ValueType, right: ValueType) -> ValueType:
        arrays = [each for each in (left, right) if each.kind is Kind.ARRAY]
        if arrays:
            return _common_type(arrays)
        if left.kind is right.kind is Kind.BINARY:
            return left
        return ValueType(Kind.JSON if Kind.JSON in (left.kind, right.kind) else Kind.STRING)

    def _by_argument(self, node: exp.Expr, of: ValueType) -> Kind:
        """The kind of a function, which depends on its argument."""
        inner = of.kind
        if isinstance(node, exp.Sum):
            wide = inner is Kind.BIGINT and self._dialect in _LIKE_POSTGRES
            return Kind.DECIMAL if wide else Kind.BIGINT if inner in WHOLE else inner
        if isinstance(node, exp.Avg):
            if inner is Kind.INTERVAL:
                return inner
            floats = inner in (Kind.DOUBLE, Kind.FLOAT) or self._dialect != "postgres"
            return Kind.DOUBLE if floats else Kind.DECIMAL
        if isinstance(node, exp.Extract):
            return Kind.DECIMAL if self._dialect in _LIKE_POSTGRES else Kind.INT
        if isinstance(node, exp.Ceil | exp.Floor | exp.Round | exp.Trunc | exp.Sign):
            of_whole = Kind.DOUBLE if self._dialect == "postgres" else Kind.UNKNOWN
            return of_whole if inner in WHOLE else inner
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return Kind.INSTANT if inner is Kind.DATE else inner
        if isinstance(node, exp.AtTimeZone):
            return {Kind.LOCAL: Kind.INSTANT, Kind.INSTANT: Kind.LOCAL}.get(inner, Kind.UNKNOWN)
        if isinstance(node, exp.Bracket):
            sliced = isinstance(node.expressions[0], exp.Slice)
            return Kind.ARRAY if sliced else self.element(node.this)
        return Kind.UNKNOWN

    def _digits_of_call(self, node: exp.Expr, kind: Kind, of: ValueType) -> Digits | None:
        if isinstance(node, exp.Sum | exp.Avg):
            return digits.of_total(node, of.kind, of.digits) if of.digits else None
        if isinstance(node, exp.Sign):
            return Digits(1, 0) if kind is Kind.DECIMAL else None
        if isinstance(node, exp.Round | exp.Trunc | exp.Ceil | exp.Floor):
            return digits.of_rounding(node, of.digits) if of.digits else None
        if isinstance(node, exp.Extract) and kind is Kind.DECIMAL:
            return digits.of_part(node, self[node.expression])
        return digits.OF_KIND.get(kind)

    def _element_of_call(self, call: exp.Anonymous) -> Kind:
        name = call.name.lower()
        if name in ARRAYS_OF_TEXTS:
            return Kind.STRING
        if name == "array_positions":
            return Kind.INT
        if name == "array_agg":
            value = call.expressions[0]
            value = value.this if isinstance(value, exp.Order) else value
            return self[value.expressions[0] if isinstance(value, exp.Distinct) else value]
        among = [each for each in call.expressions if self[each] is Kind.ARRAY]
        return self.element(among[0]) if among else Kind.UNKNOWN

    def _literal(self, node: exp.Literal) -> Kind:
        if node.is_string:
            return Kind.STRING
        if node.is_int:
            return Kind.INT
        if "e" in node.name.lower():
            return Kind.DECIMAL if self._dialect == "postgres" else Kind.OTHER
        return Kind.DOUBLE if self._dialect in FRACTIONS_ARE_FLOATS else Kind.DECIMAL

    def _arithmetic(self, node: exp.Expr) -> Kind:
        left, right = self[node.this], self[node.expression]
        if isinstance(node, exp.Sub) and left in (Kind.STRING, Kind.JSON):
            return Kind.JSON  # without a key or an element; no text has a difference
        if isinstance(node, exp.Add | exp.Sub):
            found = _of_moments(node, left, right)
            if found is not None:
                return found
        if isinstance(node, exp.Div) and {left, right} <= WHOLE:
            whole = self._dialect in DIVIDES_TO_WHOLE
            return _widest(left, right) if whole else Kind.DOUBLE
        return _widest(left, right)

    def _type_of_any(self, nodes: Iterable[exp.Expr]) -> ValueType:
        """The common type of several values, as in COALESCE or CASE; next to an array, a text such
        as ``'{}'`` is also one."""
        some = [node for node in nodes if not isinstance(node, exp.Null)]
        if any(self[node] is Kind.ARRAY for node in some):
            some = [node for node in some if not node.is_string]
        return _common_type([self._type(node) for node in some])

    def _of_origin(self, origin: Origin) -> ValueType:
        if isinstance(origin, Element):
            kind = self.element(origin.array)
            kind = Kind.UNKNOWN if kind is Kind.DECIMAL else kind  # its digits are not known
            return ValueType(kind, digits.OF_KIND.get(kind))
        return _type_in_spark(origin) if isinstance(origin, str) else self._type(origin)


def _common_type(types: Sequence[ValueType]) -> ValueType:
    elements = [each.element for each in types if each.kind is Kind.ARRAY and each.element]
    if not {each.kind for each in types} <= {Kind.ARRAY, Kind.UNKNOWN}:  # NULL is of no known kind
        elements = []
    return ValueType(
        _common_kind([each.kind for each in types]),
        digits.common_digits([each.digits for each in types]),
        _common_kind(elements),
    )


def _common_kind(kinds: Sequence[Kind]) -> Kind:
    return functools.reduce(_widest, kinds) if kinds else Kind.UNKNOWN


def _widest(left: Kind, right: Kind) -> Kind:
    if left is right:
        return left
    pair = {left, right}
    if Kind.INTERVAL in pair and pair <= {Kind.INTERVAL, *_SCALES}:
        return Kind.INTERVAL
    return max(pair, key=_SCALES.index) if pair <= set(_SCALES) else Kind.UNKNOWN


def results(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return [each.args["true"] for each in node.args["ifs"]] + ([default] if default else [])
    if isinstance(node, exp.If):
        default = node.args.get("false")
        return [node.args["true"], *([default] if default else [])]
    if isinstance(node, exp.Nullif):
        return [node.this]
    return [node.this, *node.expressions]


def _of_moments(node: exp.Expr, left: Kind, right: Kind) -> Kind | None:
    """The kind of a sum or difference with a date or a timestamp."""
    if right is Kind.INTERVAL and left in DATES:
        return Kind.LOCAL if left is Kind.DATE else left
    if {left, right} == {Kind.DATE, Kind.TIME} and isinstance(node, exp.Add):
        return Kind.LOCAL
    if {left, right} <= DATES and MOMENTS & {left, right} and isinstance(node, exp.Sub):
        return Kind.INTERVAL
    if left is Kind.DATE and right in WHOLE:
        return Kind.DATE
    if left is Kind.DATE and right is Kind.DATE and isinstance(node, exp.Sub):
        return Kind.INT
    return Kind.UNKNOWN if {left, right} & DATES else None
