"""Infer the kinds of the values in a query of another dialect, before it is translated.

The meaning of some operators depends on types: ``a / b`` of two integers is an integer in Postgres
and a fraction in Spark; of two decimals it has different digits in each. A kind has as much of a
type as the translation needs, by the rules of the query's own dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.dialect.kinds.function_kinds import (
    ARRAYS_OF_TEXTS,
    BY_CALL,
    BY_CLASS,
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


def spark_kind(type_: str) -> Kind:
    """The kind of a column of a Delta table."""
    try:
        found = exp.DataType.build(type_, dialect="spark")
    except SqlglotError:
        return Kind.OTHER
    if found.is_type(_T.TIMESTAMP):
        return Kind.INSTANT
    return Kind.UNKNOWN if found.is_type(_T.UNKNOWN) else _OF_TYPE.get(found.this, Kind.OTHER)


def type_kind(type_: exp.DataType) -> Kind:
    """The kind of a type in a cast, in a dialect where TIMESTAMP has no zone."""
    return _OF_TYPE.get(type_.this, Kind.OTHER)


def element_kind(type_: str) -> Kind:
    """The kind of the elements of a column of a Delta table."""
    found = re.fullmatch(r"array<(.*)>", type_.strip(), re.IGNORECASE)
    return spark_kind(found[1]) if found else Kind.UNKNOWN


_SAME = (exp.Min, exp.Max, exp.AnyValue, exp.Abs, exp.Neg, exp.Paren, exp.Alias, exp.Window,
         exp.Filter, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Distinct,
         exp.IgnoreNulls, exp.RespectNulls, exp.Ordered)  # fmt: skip
_SCALES = frozenset({Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE})
_UNITED = (exp.Coalesce, exp.Greatest, exp.Least, exp.If, exp.Case, exp.Nullif)
DIVIDES_TO_WHOLE = frozenset({"postgres", "redshift", "trino", "presto", "athena", "tsql",
                               "fabric", "sqlite", "teradata", "materialize", "risingwave",
                               "dremio", "drill", "dune"})  # fmt: skip
"""Dialects in which an integer divided by an integer is an integer."""
FRACTIONS_ARE_FLOATS = frozenset({"bigquery", "hive", "sqlite"})
"""Dialects in which 0.1 is a float, not a decimal."""
_LIKE_POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})


class Kinds:
    """The kind of each expression of a query, as it was before the query is rewritten."""

    def __init__(self, tree: exp.Query, columns: Columns, dialect: str) -> None:
        """
        Args:
            tree: As parsed, not qualified.
            columns: Of its tables.
            dialect: The dialect of the query.
        """
        self._whole = dialect in DIVIDES_TO_WHOLE
        self.origins = Origins(tree, columns, RULES.get(dialect, SPARK))
        self.sizes: dict[int, Any] = {}
        """The digits of each node, found by `digits_of`."""
        self._found: dict[int, Kind] = {}
        self._elements: dict[int, Kind] = {}
        self._dialect = dialect
        self._kept = list(tree.walk())  # keeps the nodes alive, so that no id is reused
        for node in self._kept:
            if self[node] is Kind.ARRAY:
                self.element(node)

    def __getitem__(self, node: exp.Expr | None) -> Kind:
        if node is None:
            return Kind.UNKNOWN
        if id(node) not in self._found:
            self._found[id(node)] = Kind.UNKNOWN  # ends the recursion for a recursive query
            self._found[id(node)] = self._kind(node)
        return self._found[id(node)]

    def carry(self, old: exp.Expr, new: exp.Expr) -> None:
        """Give the replacement of a node the node's kind and digits."""
        self._found[id(new)] = self._found.get(id(old), Kind.UNKNOWN)
        self.sizes[id(new)] = self.sizes.get(id(old))
        if id(old) in self._elements:
            self._elements[id(new)] = self._elements[id(old)]
        self._kept.append(new)

    def declare(self, new: exp.Expr, kind: Kind) -> None:
        """Set the kind of a node that a rule made."""
        self._found[id(new)] = kind
        self._kept.append(new)

    def _kind(self, node: exp.Expr) -> Kind:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Cast):
            return type_kind(node.to)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div | exp.IntDiv):
            return self._arithmetic(node)
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
            return Kind.BOOL
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        return self._function(node)

    def _function(self, node: exp.Expr) -> Kind:
        if isinstance(node, _SAME):
            return self[node.this]
        if isinstance(node, _UNITED):
            return self.common_kind(results(node))
        if isinstance(node, exp.DPipe):
            sides = self[node.this], self[node.expression]
            if set(sides) == {Kind.BINARY}:
                return Kind.BINARY
            return next((each for each in (Kind.ARRAY, Kind.JSON) if each in sides), Kind.STRING)
        known = (kind for classes, kind in BY_CLASS if isinstance(node, classes))
        return next(known, None) or self._by_argument(node)

    def _by_argument(self, node: exp.Expr) -> Kind:
        if isinstance(node, exp.Anonymous):
            return BY_CALL.get(node.name.lower(), Kind.UNKNOWN)
        inner = self[node.this] if isinstance(node.this, exp.Expr) else Kind.UNKNOWN
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

    def element(self, array: exp.Expr) -> Kind:
        """The kind of an array's elements."""
        if id(array) not in self._elements:
            self._elements[id(array)] = Kind.UNKNOWN
            self._elements[id(array)] = self._element(array)
        return self._elements[id(array)]

    def _element(self, array: exp.Expr) -> Kind:
        if isinstance(array, exp.Column):
            return self._element_of_column(array)
        if isinstance(array, exp.Cast) and array.to.is_type(_T.ARRAY):
            return type_kind(array.to.expressions[0])
        if isinstance(array, exp.Array):
            return self.common_kind(array.expressions)
        if isinstance(array, _UNITED):
            return self._common([self.element(each) for each in results(array)
                                 if self[each] is Kind.ARRAY and not is_empty(each)])  # fmt: skip
        if isinstance(array, exp.Subquery) and len(array.selects) == 1:
            return self.element(array.selects[0])
        if isinstance(array, exp.DPipe):
            sides = (array.this, array.expression)
            return self._common([self.element(each) for each in sides if self[each] is Kind.ARRAY])
        if isinstance(array, exp.Anonymous):
            return self._element_of_call(array)
        inner = array.this if isinstance(array.this, exp.Expr) else None
        same = isinstance(array, _SAME) or self[array] is Kind.ARRAY
        return self.element(inner) if same and inner is not None else Kind.UNKNOWN

    def _element_of_column(self, array: exp.Column) -> Kind:
        origins = self.origins.of(array)
        kinds = [
            element_kind(each) if isinstance(each, str) else self.element(each)
            for each in origins
            if each is not None and not isinstance(each, Element)
        ]
        return self._common(kinds) if len(kinds) == len(origins) else Kind.UNKNOWN

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
        return self.element(among[0]) if among and self[call] is Kind.ARRAY else Kind.UNKNOWN

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
            return self._widest(left, right) if self._whole else Kind.DOUBLE
        return self._widest(left, right)

    def common_kind(self, nodes: Iterable[exp.Expr]) -> Kind:
        """The common kind of several values, as in COALESCE or CASE; next to an array, a text such
        as ``'{}'`` is also one."""
        some = [node for node in nodes if not isinstance(node, exp.Null)]
        kinds = [self[node] for node in some]
        if Kind.ARRAY in kinds:
            kinds = [self[node] for node in some if not node.is_string]
        return self._common(kinds)

    def _common(self, kinds: list[Kind]) -> Kind:
        found = kinds[0] if kinds else Kind.UNKNOWN
        for kind in kinds[1:]:
            found = self._widest(found, kind)
        return found

    def _widest(self, left: Kind, right: Kind) -> Kind:
        if left is right:
            return left
        pair = {left, right}
        if pair == {Kind.INTERVAL} | (pair & _SCALES) and len(pair) == 2:
            return Kind.INTERVAL
        numbers = (Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)
        if not pair <= set(numbers):
            return Kind.UNKNOWN
        return max(pair, key=numbers.index)

    def _subquery(self, node: exp.Subquery) -> Kind:
        query = node.this
        if isinstance(query, exp.Query) and len(query.selects) == 1:
            return self[query.selects[0]]
        return Kind.UNKNOWN

    def _column(self, column: exp.Column) -> Kind:
        origins = self.origins.of(column)
        return self._common([self._of_origin(each) for each in origins])

    def _of_origin(self, origin: Origin) -> Kind:
        if isinstance(origin, Element):
            kind = self.element(origin.array)
            return Kind.UNKNOWN if kind is Kind.DECIMAL else kind  # its digits are not known
        return spark_kind(origin) if isinstance(origin, str) else self[origin]


def is_empty(array: exp.Expr) -> bool:
    """Whether it is ``ARRAY[]``, whose elements may have any type."""
    return isinstance(array, exp.Array) and not array.expressions


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
    if right is Kind.INTERVAL and left in (Kind.DATE, *MOMENTS):
        return Kind.LOCAL if left is Kind.DATE else left
    if {left, right} == {Kind.DATE, Kind.TIME} and isinstance(node, exp.Add):
        return Kind.LOCAL
    moments = {left, right} <= {Kind.DATE, *MOMENTS} and {left, right} != {Kind.DATE}
    if moments and isinstance(node, exp.Sub):
        return Kind.INTERVAL
    if left is Kind.DATE and right in WHOLE:
        return Kind.DATE
    if left is Kind.DATE and right is Kind.DATE and isinstance(node, exp.Sub):
        return Kind.INT
    return Kind.UNKNOWN if {left, right} & {Kind.DATE, *MOMENTS} else None
