"""Every other dialect: the part of SQL in which they agree with Spark, by their documentation.

None of them was run. What is known to differ in a dialect is refused for it, depending on column
types if they matter; functions beyond the common ones are refused in all.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import MOMENTS, WHOLE, Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import (
    DIVIDES_TO_WHOLE,
    FRACTIONS_ARE_FLOATS,
)
from dagster_streamtables.compiler.dialect.rules import datetimes, function_rules
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Dialect, Reason, Rules
from dagster_streamtables.compiler.dialect.rules.function_rules import NUMBERS
from dagster_streamtables.compiler.dialect.rules.rule import Query, Rule, literal_int, literal_text

_T = exp.DataType.Type
EXAMINED = frozenset({
    "athena", "bigquery", "databricks", "doris", "dremio", "drill", "druid", "dune", "exasol",
    "fabric", "hive", "materialize", "mysql", "oracle", "presto", "redshift", "risingwave",
    "singlestore", "snowflake", "spark2", "sqlite", "starrocks", "teradata", "trino", "tsql",
})  # fmt: skip
_DIVIDES_TO_FLOAT = frozenset({"bigquery", "databricks", "hive", "spark2"})
_AVERAGES_TO_FLOAT = _DIVIDES_TO_FLOAT | {
    "athena", "doris", "dremio", "drill", "druid", "dune", "presto", "sqlite", "starrocks", "trino",
}  # fmt: skip
_IGNORES_CASE = frozenset({"mysql", "singlestore", "teradata", "tsql"})
"""Dialects that ignore case in strings, unless a collation says otherwise."""
_ESCAPES = frozenset({
    "bigquery", "databricks", "doris", "hive", "materialize", "mysql", "redshift", "risingwave",
    "singlestore", "spark2", "starrocks",
})  # fmt: skip
"""Dialects in which a backslash escapes in LIKE."""
_PLAIN = (exp.Ceil, exp.Floor, exp.Escape, exp.CountIf, exp.IntDiv)
_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
_IN_SPARK = "write it in Spark SQL"
_AS_STRING = "write CASE WHEN … for a boolean, or a cast in Spark SQL"
_BY_BYTES = "add COLLATE with a binary collation, if bytes should be compared"


def build_experimental_dialect(dialect: str) -> Dialect:
    """The rules of an examined dialect."""
    like = partial(function_rules.like, escaped=dialect in _ESCAPES)
    rewrites: Rules = {**_REWRITES, exp.Like: like}
    refused: dict[type[exp.Expr], Reason] = {}
    if dialect in FRACTIONS_ARE_FLOATS:
        rewrites = {**rewrites, exp.Literal: _fraction}
    if dialect in _IGNORES_CASE:
        rewrites = {**rewrites, **_by_case()}
        refused[exp.Replace] = refused[exp.Like] = Reason(
            f"{dialect} ignores case, unless a collation says otherwise", _IN_SPARK
        )
    if dialect == "sqlite":
        refused[exp.Like] = Reason("SQLite's LIKE ignores the case of ASCII letters", _IN_SPARK)
    if dialect == "oracle":
        refused[exp.DPipe] = Reason("Oracle takes NULL for ''", _IN_SPARK)
    plain = _PLAIN if dialect in ("bigquery", "oracle") else (*_PLAIN, exp.Trim)
    return COMMON.extend(plain, rewrites, refused)


def _fraction(node: exp.Expr, query: Query) -> exp.Expr | None:
    whole = literal_text(node) is not None or literal_int(node) is not None
    return None if whole else function_rules.typed(node.copy(), _T.DOUBLE)


def _divide(node: exp.Expr, query: Query) -> exp.Expr | None:
    left, right = query.kind(node.this), query.kind(node.expression)
    if Kind.DOUBLE in (left, right) and {left, right} <= set(NUMBERS):
        return None
    if {left, right} <= WHOLE and query.dialect in DIVIDES_TO_WHOLE:
        return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    for part in (node.this, node.expression):
        known = WHOLE if query.dialect in _DIVIDES_TO_FLOAT else ()
        query.require(
            node, part, known, "the quotient has other digits in Spark", "cast both to DOUBLE"
        )
    return None


def _average(node: exp.Expr, query: Query) -> None:
    whole = WHOLE if query.dialect in _AVERAGES_TO_FLOAT else frozenset[Kind]()
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    query.require(node, value, (*whole, Kind.DOUBLE), "the average has other digits in Spark",
                  "cast it to DOUBLE")  # fmt: skip


def _cast(node: exp.Expr, query: Query) -> None:
    target = node.args["to"]
    known: tuple[Kind, ...] = (*MOMENTS, Kind.DATE, Kind.STRING)
    if target.this in (_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT):
        known = (*WHOLE, Kind.STRING)
    elif target.this is _T.DECIMAL and target.expressions:
        known = (*WHOLE, Kind.DECIMAL, Kind.STRING)
    elif target.this in (_T.DOUBLE, _T.FLOAT):
        known = (*NUMBERS, Kind.STRING)
    elif target.this in (_T.TEXT, _T.VARCHAR, _T.NVARCHAR) and not target.expressions:
        known = (*WHOLE, Kind.STRING, Kind.DATE)
    elif target.this in (_T.DECIMAL, _T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR, _T.BOOLEAN):
        known = ()
    query.require(node, node.this, known, "Spark casts it differently", _IN_SPARK)


def _check_round(node: exp.Expr, query: Query) -> None:
    query.require(node, node.this, (*WHOLE, Kind.DECIMAL),
                  "Spark rounds halves of floats differently", "cast it to a decimal")  # fmt: skip


def _check_sum(node: exp.Expr, query: Query) -> None:
    """Sums and differences: of numbers, or of a timestamp and a constant interval."""
    if isinstance(node.expression, exp.Interval):
        query.require(
            node, node.this, MOMENTS, "the sum has another type in Spark", "cast it to TIMESTAMP"
        )
        return
    for part in (node.this, node.expression):
        query.require(node, part, NUMBERS, "Spark adds numbers only", "write it in Spark SQL")


def _check_concat(node: exp.Expr, query: Query) -> None:
    for part in (node.this, node.expression):
        query.require(node, part, (Kind.STRING,), "Spark may write it differently", _AS_STRING)


def _length(node: exp.Expr, query: Query) -> None:
    if query.dialect in ("mysql", "singlestore", "tsql", "fabric", "doris", "starrocks"):
        raise query.refusal(node, "it counts bytes, or ignores trailing blanks",
                            "use CHAR_LENGTH in Spark SQL")  # fmt: skip
    query.require(node, node.this, (Kind.STRING,), "this needs a string", _AS_STRING)


def _require_frame(node: exp.Expr, query: Query) -> None:
    """LAST_VALUE: without a frame, Snowflake reads all rows, others the rows up to the current."""
    window = node.find_ancestor(exp.Window)
    if window is None or not window.args.get("spec"):
        raise query.refusal(node, "the default frame differs", "write the frame: ROWS BETWEEN …")


def _truncate(node: exp.Expr, query: Query) -> exp.Expr | None:
    query.require(node, node.this, MOMENTS, "the result stays a date", "cast it to TIMESTAMP")
    return datetimes.truncation(node, query, units=(*_PARTS, "SECOND"))


def _drop_collation(node: exp.Expr, query: Query) -> exp.Expr:
    name = node.expression.name or literal_text(node.expression) or ""
    if "bin" not in name.lower():
        raise query.refusal(node, "Spark compares bytes", _BY_BYTES)
    return node.this.copy()


def _by_case() -> dict[type[exp.Expr], Rule]:
    """Rules by which strings are compared only if a collation compares bytes."""
    compared = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between,
                exp.NullSafeEQ, exp.Group, exp.Distinct, exp.Window, exp.Union, exp.Intersect,
                exp.Except)  # fmt: skip

    def among(rule: Rule | None) -> Rule:
        def check_case(node: exp.Expr, query: Query) -> exp.Expr | None:
            kinds = [query.kind(each) for each in _operands(node)]
            if Kind.STRING in kinds and Kind.BYTES not in kinds:
                raise query.refusal(
                    node, f"{query.dialect} ignores case in strings, but Spark does not", _BY_BYTES
                )
            return rule(node, query) if rule is not None else None

        return check_case

    return {
        exp.Collate: _drop_collation,
        **{each: among(COMMON.rewrites.get(each)) for each in compared},
    }


def _operands(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Window):
        return node.args.get("partition_by") or []
    if isinstance(node, exp.SetOperation):
        return node.selects if node.args.get("distinct") else []
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select):
        return node.parent.selects
    if isinstance(node, exp.Group | exp.Distinct):
        return node.expressions
    return [node.this]


_REWRITES: Rules = {
    exp.Div: _divide, exp.Avg: _average, exp.Cast: _cast, exp.TryCast: _cast,
    exp.Round: _check_round, exp.Add: _check_sum, exp.Sub: _check_sum,
    exp.Interval: datetimes.check_interval,
    exp.DPipe: _check_concat, exp.Length: _length, exp.Substring: function_rules.check_substring,
    exp.Left: function_rules.check_end, exp.Right: function_rules.check_end,
    exp.Extract: partial(datetimes.extraction, parts=_PARTS), exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate, exp.FirstValue: _require_frame, exp.LastValue: _require_frame,
    exp.NthValue: _require_frame,
}  # fmt: skip
