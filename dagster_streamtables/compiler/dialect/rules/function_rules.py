"""Functions and operators of several dialects whose meaning depends on a type or a constant."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules import patterns
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    call,
    literal_int,
    literal_text,
    refuse_if,
)

_T = exp.DataType.Type
NUMBERS = (*WHOLE, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)
_PRINTED_ALIKE = (*WHOLE, Kind.DECIMAL, Kind.STRING, Kind.DATE)
_TEXTS_IN_POSTGRES = {
    Kind.BINARY: "write encode(b, 'hex') for the bytes b",
    Kind.ARRAY: "write array_to_string(a::text[], ',') for the array a",
}
_WHOLE_TYPES = (_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT)


def typed(node: exp.Expr, type_: Any) -> exp.Cast:
    return exp.Cast(this=node, to=exp.DataType.build(type_, dialect="spark"))


def cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast to a whole number rounds, and Spark's truncates; a cast to a short string truncates,
    and Spark's does not."""
    target, value = node.args["to"], node.this
    if target.this in _WHOLE_TYPES:
        return _to_whole(node, query)
    if target.this is _T.DECIMAL and not target.expressions:
        return _to_decimal(node, query)
    if target.this in (_T.TEXT, _T.VARCHAR, _T.NVARCHAR):
        as_text(node, value, query, Kind.BOOL, Kind.LOCAL)
        width = literal_int(target.expressions[0].this) if target.expressions else None
        return None if width is None else exp.Left(
            this=_string(value, query), expression=exp.Literal.number(width)
        )  # fmt: skip
    if target.this in (_T.CHAR, _T.NCHAR):
        raise query.refusal(node, "Spark does not pad it with blanks", "cast to VARCHAR")
    return None


def _to_whole(node: exp.Expr, query: Query) -> exp.Expr | None:
    kinds = (*NUMBERS, Kind.STRING, Kind.BOOL)
    kind = query.require(node, node.this, kinds,
                         "Spark truncates a fraction instead of rounding it",
                         "write FLOOR(…), CEIL(…) or ROUND(…, 0) and cast that")  # fmt: skip
    if kind is Kind.DECIMAL:
        node.set("this", exp.Round(this=node.this.copy()))
    elif kind in (Kind.DOUBLE, Kind.FLOAT):
        node.set("this", call("RINT", node.this.copy()))
    return None


def _to_decimal(node: exp.Expr, query: Query) -> exp.Expr | None:
    """DECIMAL without precision is arbitrary in Postgres, (18, 3) in DuckDB, (10, 0) in Spark."""
    if query.kind(node.this) is Kind.DECIMAL and query.dialect == "postgres":
        return node.this
    raise query.refusal(node, "in Spark a decimal without digits has none after the point",
                        "specify them, for example DECIMAL(20, 6)")  # fmt: skip


def as_text(node: exp.Expr, value: exp.Expr, query: Query, *more: Kind) -> None:
    """Refuse a value that Spark may write differently as a string. All dialects write some kinds
    the same way; `more` are others that this node writes as Spark does."""
    texts = _TEXTS_IN_POSTGRES if query.dialect == "postgres" else {}
    kind = query.require(
        node, value, (*_PRINTED_ALIKE, *more), "Spark writes it differently as a string",
        texts.get(query.kind(value), "cast it to a whole number, a decimal or a date first"),
    )  # fmt: skip
    digits = query.digits(value) if query.dialect == "postgres" else None
    varying = digits is not None and digits.varying
    known = isinstance(value.unnest(), exp.Column) or (digits is not None and digits.fits)
    cast_ = isinstance(value.unnest(), exp.Cast)
    if kind is Kind.DECIMAL and not cast_ and (varying or not known):
        raise query.refusal(
            node, "a computed decimal has another number of trailing zeros in Spark",
            "cast it to DECIMAL(…) first",
        )  # fmt: skip


def _string(value: exp.Expr, query: Query) -> exp.Expr:
    return value.copy() if query.kind(value) is Kind.STRING else typed(value.copy(), _T.TEXT)


def check_concat(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``a || b`` of strings."""
    for part in (node.this, node.expression):
        if not isinstance(part, exp.Null):
            as_text(node, part, query)
    return None


def concat(node: exp.Expr, query: Query) -> None:
    """CONCAT; sqlglot replaces NULL by '', which needs strings."""
    parts: list[exp.Expr] = []
    for part in node.expressions:
        if not isinstance(part, exp.Null):
            as_text(node, part, query)
            parts.append(_string(part, query))
        elif not node.args.get("coalesce") and not isinstance(node, exp.ConcatWs):
            parts.append(part)
    node.set("expressions", parts)


def check_string_agg(node: exp.Expr, query: Query, fix: str) -> None:
    """``string_agg``: Spark joins texts."""
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    query.require(node, value, (Kind.STRING,), "Spark may write it differently", fix)


def round_(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Postgres rounds floats, and only floats, half to even."""
    if node.args.get("decimals") is None:
        kind = query.require(node, node.this, NUMBERS, "a float would be rounded half to even",
                             "cast it to NUMERIC(…) or DOUBLE PRECISION")  # fmt: skip
        if kind in (Kind.DOUBLE, Kind.FLOAT):
            return call("RINT", node.this.copy())
    return None


check_substring = refuse_if(
    lambda node, _: (literal_int(node.args.get("start")) or 0) < 1,
    "positions before the first character mean something else in Spark", "begin at 1 or later",
)  # fmt: skip
check_end = refuse_if(
    lambda node, _: (count := literal_int(node.expression)) is None or count < 0,
    "a negative count returns '' in Spark", "write a number of 0 or more",
)  # fmt: skip
"""LEFT and RIGHT: a negative number omits that many characters; in Spark it omits all."""


def like(node: exp.Expr, query: Query, *, escaped: bool) -> None:
    """LIKE, in a dialect where a backslash escapes, as in Spark, or is an ordinary character."""
    if escaped or isinstance(node.parent, exp.Escape):
        return
    pattern = literal_text(node.expression)
    if pattern is None:
        raise query.refusal(
            node, "a backslash in the pattern would escape in Spark", "add ESCAPE '!'"
        )
    node.set("expression", exp.Literal.string(pattern.replace("\\", "\\\\")))


def matches(node: exp.Expr, query: Query, *, posix: bool, ignore_case: bool = False) -> exp.Expr:
    """A search for a regular expression."""
    if node.args.get("flag"):
        raise query.refusal(node, "flags are not translated", "write them into the pattern")
    pattern = java(node, query, posix=posix)
    flags = "(?iu)" if ignore_case else ""
    expression = exp.Literal.string(flags + pattern)
    return exp.paren(exp.RegexpLike(this=node.this.copy(), expression=expression))


def similar(node: exp.Expr, query: Query) -> exp.Expr | None:
    """SIMILAR TO: a pattern that must match the whole string."""
    if isinstance(node.parent, exp.Escape):
        raise query.refusal(node, "Java escapes with a backslash", "escape with a backslash too")
    pattern = literal_text(node.args.get("expression"))
    if pattern is not None:
        looked_for = exp.Literal.string(patterns.posix_pattern(pattern))
        node = node.copy()
        node.set("expression", looked_for)
    return matches(node, query, posix=True)


def java(node: exp.Expr, query: Query, *, posix: bool) -> str:
    written = literal_text(node.args.get("expression"))
    pattern = None if written is None else pattern_of(written, query, posix=posix)
    if pattern is None:
        raise query.refusal(
            node, "it may mean something else in Java's regular expressions, which Spark uses",
            "write a constant of characters, classes such as [a-z] and quantifiers, or use LIKE",
        )  # fmt: skip
    return pattern


def pattern_of(written: str, query: Query, *, posix: bool) -> str | None:
    """A pattern in Java's syntax, if there is one; notes which letters it means."""
    letters = query.dialect == "postgres"
    found = patterns.java_pattern(written, posix=posix, letters=letters)
    if found is not None and posix and patterns.has_letters(written):
        query.note("letters in patterns are those of Unicode, as in a database of UTF-8")
    return found


def ordered_set(node: exp.Expr, query: Query, *, name: str) -> exp.Expr:
    """A percentile, which sqlglot would print as an approximate one."""
    group = node.parent if isinstance(node.parent, exp.WithinGroup) else None
    value = group.expression.expressions[0].this if group is not None else node.this
    if name == "PERCENTILE_DISC" and query.kind(value) in (Kind.DECIMAL, Kind.BIGINT):
        raise query.refusal(
            node, "it returns one of the values, and Spark a float, which has fewer digits",
            "cast the expression in ORDER BY to DOUBLE PRECISION if a float will do",
        )  # fmt: skip
    if group is not None:
        return call(name, node.this.copy())
    part = node.args["expression"].copy()
    order = exp.Order(expressions=[exp.Ordered(this=node.this.copy(), nulls_first=True)])
    return exp.WithinGroup(this=call(name, part), expression=order)
