"""Infer the types in a query of another dialect, before it is translated.

The meaning of some operators depends on types: ``a / b`` of two integers is an integer in Postgres
and a fraction in Spark; of two decimals it has different digits in each. A kind is as much of a
type as is needed to tell, by the rules of the query's own dialect.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from dagster_streamtables.compiler.text.query_text import table_name


class Kind(enum.Enum):
    """A class of types; UNKNOWN if it cannot be inferred from the text and the columns."""

    INT = "a whole number"
    BIGINT = "a whole number of 64 bits"
    DECIMAL = "a decimal"
    MEAN = "an average"
    """Exact in the dialect, a double in Spark."""
    FLOAT = "a float of 32 bits"
    DOUBLE = "a float"
    STRING = "a string"
    BYTES = "a string that is compared by its bytes"
    BOOL = "a boolean"
    DATE = "a date"
    INSTANT = "a timestamp with a zone"
    LOCAL = "a timestamp without a zone"
    ARRAY = "an array"
    OTHER = "of another type"
    UNKNOWN = "of a type that is not known here"


WHOLE = frozenset({Kind.INT, Kind.BIGINT})
MOMENTS = frozenset({Kind.INSTANT, Kind.LOCAL})

_T = exp.DataType.Type
_OF_TYPE: dict[Any, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.MEDIUMINT), Kind.INT),
    **dict.fromkeys((_T.BIGINT, _T.UINT, _T.INT128), Kind.BIGINT),
    _T.DECIMAL: Kind.DECIMAL,
    _T.FLOAT: Kind.FLOAT,
    _T.DOUBLE: Kind.DOUBLE,
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR, _T.NCHAR), Kind.STRING),
    _T.BOOLEAN: Kind.BOOL,
    **dict.fromkeys((_T.DATE, _T.DATE32), Kind.DATE),
    **dict.fromkeys((_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ), Kind.INSTANT),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.DATETIME, _T.DATETIME2), Kind.LOCAL),
    **dict.fromkeys((_T.ARRAY, _T.LIST), Kind.ARRAY),
}
_BY_CLASS: tuple[tuple[tuple[type[exp.Expr], ...], Kind], ...] = (
    ((exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Pad, exp.Replace,
      exp.RegexpReplace, exp.SplitPart, exp.Concat, exp.ConcatWs, exp.GroupConcat, exp.TimeToStr,
      exp.Translate, exp.Repeat, exp.Reverse, exp.Chr, exp.MD5, exp.Overlay, exp.ArrayToString),
     Kind.STRING),
    ((exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile,
      exp.ApproxDistinct), Kind.BIGINT),
    ((exp.Length, exp.StrPosition, exp.Ascii, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute,
      exp.Second, exp.Quarter, exp.DateDiff, exp.ArraySize), Kind.INT),
    ((exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Sin, exp.Cos, exp.Tan, exp.Atan2,
      exp.Degrees, exp.Radians, exp.Pi, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
      exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp), Kind.DOUBLE),
    ((exp.Collate,), Kind.BYTES),
    ((exp.CurrentDate,), Kind.DATE),
    ((exp.CurrentTimestamp,), Kind.INSTANT),
    ((exp.Array,), Kind.ARRAY),
)  # fmt: skip
_SAME = (exp.Min, exp.Max, exp.AnyValue, exp.Abs, exp.Neg, exp.Paren, exp.Alias, exp.Window,
         exp.Filter, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Distinct,
         exp.IgnoreNulls, exp.RespectNulls, exp.Ordered)  # fmt: skip
_UNITED = (exp.Coalesce, exp.Greatest, exp.Least, exp.If, exp.Case, exp.Nullif)
DIVIDES_TO_WHOLE = frozenset({"postgres", "redshift", "trino", "presto", "athena", "tsql",
                               "fabric", "sqlite", "teradata", "materialize", "risingwave",
                               "dremio", "drill", "dune"})  # fmt: skip
"""Dialects in which an integer divided by an integer is an integer."""
FRACTIONS_ARE_FLOATS = frozenset({"bigquery", "hive", "sqlite"})
"""Dialects in which 0.1 is a float, not a decimal."""
_LIKE_POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})


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


class Kinds:
    """The kind of each expression of a query, as it was before the query is rewritten."""

    def __init__(
        self, tree: exp.Query, columns: Mapping[str, Mapping[str, str]], dialect: str
    ) -> None:
        """
        Args:
            tree: As parsed, not qualified.
            columns: Table name in the query → its columns and their types in Spark.
            dialect: The dialect of the query.
        """
        self._whole = dialect in DIVIDES_TO_WHOLE
        self._columns = {
            name: {column.lower(): type_ for column, type_ in each.items()}
            for name, each in columns.items()
        }
        self._scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
        self._found: dict[int, Kind] = {}
        self._dialect = dialect
        self._kept = list(tree.walk())  # keeps the nodes alive, so that no id is reused
        for node in self._kept:
            self[node]

    def __getitem__(self, node: exp.Expr | None) -> Kind:
        if node is None:
            return Kind.UNKNOWN
        if id(node) not in self._found:
            self._found[id(node)] = Kind.UNKNOWN  # ends the recursion for a recursive query
            self._found[id(node)] = self._kind(node)
        return self._found[id(node)]

    def carry(self, old: exp.Expr, new: exp.Expr) -> None:
        """Give the replacement of a node the node's kind."""
        self._found[id(new)] = self._found.get(id(old), Kind.UNKNOWN)
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
            return self.united(_results(node))
        if isinstance(node, exp.DPipe):
            joins_arrays = Kind.ARRAY in (self[node.this], self[node.expression])
            return Kind.ARRAY if joins_arrays else Kind.STRING
        known = (kind for classes, kind in _BY_CLASS if isinstance(node, classes))
        return next(known, None) or self._by_argument(node)

    def _by_argument(self, node: exp.Expr) -> Kind:
        inner = self[node.this] if isinstance(node.this, exp.Expr) else Kind.UNKNOWN
        if isinstance(node, exp.Sum):
            wide = inner is Kind.BIGINT and self._dialect in _LIKE_POSTGRES
            return Kind.DECIMAL if wide else Kind.BIGINT if inner in WHOLE else inner
        if isinstance(node, exp.Avg):
            floats = inner in (Kind.DOUBLE, Kind.FLOAT) or self._dialect != "postgres"
            return Kind.DOUBLE if floats else Kind.MEAN
        if isinstance(node, exp.Extract):
            return Kind.DECIMAL if self._dialect in _LIKE_POSTGRES else Kind.INT
        if isinstance(node, exp.Ceil | exp.Floor | exp.Round | exp.Trunc):
            of_whole = Kind.DOUBLE if self._dialect == "postgres" else Kind.UNKNOWN
            return of_whole if inner in WHOLE else inner
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return Kind.INSTANT if inner is Kind.DATE else inner
        return Kind.UNKNOWN

    def _literal(self, node: exp.Literal) -> Kind:
        if node.is_string:
            return Kind.STRING
        if node.is_int:
            return Kind.INT
        if "e" in node.name.lower():
            return Kind.OTHER
        return Kind.DOUBLE if self._dialect in FRACTIONS_ARE_FLOATS else Kind.DECIMAL

    def _arithmetic(self, node: exp.Expr) -> Kind:
        left, right = self[node.this], self[node.expression]
        if isinstance(node, exp.Add | exp.Sub):
            found = _of_moments(node, left, right)
            if found is not None:
                return found
        if isinstance(node, exp.Div) and {left, right} <= WHOLE:
            return self._widest(left, right) if self._whole else Kind.DOUBLE
        return self._widest(left, right)

    def united(self, nodes: Iterable[exp.Expr]) -> Kind:
        """The common kind of several values, as in COALESCE or CASE."""
        kinds = [self[node] for node in nodes if not isinstance(node, exp.Null)]
        found = kinds[0] if kinds else Kind.UNKNOWN
        for kind in kinds[1:]:
            found = self._widest(found, kind)
        return found

    def _widest(self, left: Kind, right: Kind) -> Kind:
        if left is right:
            return left
        pair = {left, right}
        numbers = (Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.MEAN, Kind.DOUBLE)
        if not pair <= set(numbers):
            return Kind.UNKNOWN
        return max(pair, key=numbers.index)

    def _subquery(self, node: exp.Subquery) -> Kind:
        query = node.this
        if isinstance(query, exp.Query) and len(query.selects) == 1:
            return self[query.selects[0]]
        return Kind.UNKNOWN

    def _column(self, column: exp.Column) -> Kind:
        query = column.find_ancestor(exp.Query)
        scope = self._scopes.get(id(query)) if query is not None else None
        while scope is not None:
            kinds = [kind for kind in self._in_scope(column, scope) if kind is not None]
            if kinds:
                return kinds[0] if len(kinds) == 1 else Kind.UNKNOWN
            scope = scope.parent
        return Kind.UNKNOWN

    def _in_scope(self, column: exp.Column, scope: Scope) -> Iterable[Kind | None]:
        qualifier, name = column.table.lower(), column.name.lower()
        for alias, (_, source) in scope.selected_sources.items():
            if not qualifier or qualifier == alias.lower():
                yield self._of_source(source, name, scope, alias)

    def _of_source(
        self, source: exp.Expr | Scope, name: str, scope: Scope, alias: str
    ) -> Kind | None:
        if isinstance(source, exp.Table):
            known = self._columns.get(table_name(source), {})
            renamed = [each.lower() for each in source.alias_column_names]
            names = dict(zip(renamed or known, known, strict=False))
            return spark_kind(known[names[name]]) if name in names else None
        if not isinstance(source, Scope) or not isinstance(source.expression, exp.Query):
            return Kind.UNKNOWN
        return self._of_query(source.expression, name, scope, alias)

    def _of_query(self, query: exp.Query, name: str, scope: Scope, alias: str) -> Kind | None:
        renamed = _renamed(query, scope, alias)
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        for place, output in enumerate(query.selects):
            if output.is_star:
                return Kind.UNKNOWN
            called = renamed[place] if place < len(renamed) else output.alias_or_name
            if called.lower() == name:
                return self[output]
        return None


def _renamed(query: exp.Query, scope: Scope, alias: str) -> list[str]:
    """The names that an alias with a column list gives to the columns of a query."""
    mention = scope.selected_sources[alias][0]
    if isinstance(mention, exp.Table) and mention.alias_column_names:
        return mention.alias_column_names
    around = query.parent
    return around.alias_column_names if isinstance(around, exp.Subquery | exp.CTE) else []


def _results(node: exp.Expr) -> list[exp.Expr]:
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
    if isinstance(node.expression, exp.Interval) and left in (Kind.DATE, *MOMENTS):
        return Kind.LOCAL if left is Kind.DATE else left
    if left is Kind.DATE and right in WHOLE:
        return Kind.DATE
    if left is Kind.DATE and right is Kind.DATE and isinstance(node, exp.Sub):
        return Kind.INT
    return Kind.UNKNOWN if {left, right} & {Kind.DATE, *MOMENTS} else None
