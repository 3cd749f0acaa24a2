"""Arrays of Postgres: elements, slices, concatenation, and what contains what, also in JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from typing import Any

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres import casts, ranges
from dagster_streamtables.compiler.dialect.postgres.json.json_text import TEXTUAL
from dagster_streamtables.compiler.dialect.postgres.query_clauses import any_of
from dagster_streamtables.compiler.dialect.rules import array_rules, function_rules
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_int,
    literal_text,
    template_rule,
)

_NUMBERS = "('BIGINT', 'DOUBLE')"
_AT = "VARIANT_GET(PARSE_JSON(_j), _p)"
_BOTH = "CASE WHEN _a IS NOT NULL AND _b IS NOT NULL THEN {} END"


def element(node: exp.Expr, query: Query) -> exp.Expr:
    """``arr[i]``, which is NULL outside the array, and ``arr[a:b]``, the part that is inside."""
    index = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(index, exp.Slice):
        return _slice(node, index)
    if index is None or (query.kind(node.this) is not Kind.ARRAY and literal_int(index) is None):
        raise query.refusal(node, "Spark's arrays have one dimension", "use one index")
    place = literal_int(index)
    if place is not None:
        return call("GET", node.this.copy(), place - 1)
    return from_template("GET(_a, _i - 1)", a=node.this, i=index)


def _slice(node: exp.Expr, index: exp.Slice) -> exp.Expr:
    first = index.args.get("this") or exp.Literal.number(1)
    last = index.args.get("expression") or call("CARDINALITY", node.this.copy())
    begin = "CASE WHEN _f < 1 THEN 1 ELSE _f END"
    end = "CASE WHEN _l > CARDINALITY(_a) THEN CARDINALITY(_a) ELSE _l END"
    # GREATEST takes the other value for NULL, of which there is no slice.
    size = f"GREATEST({end} - {begin} + 1, 0)"
    sliced = f"CASE WHEN _f IS NOT NULL AND _l IS NOT NULL THEN SLICE(_a, {begin}, {size}) END"
    return from_template(sliced, a=node.this, f=first, l=last)


def rewrite_concat(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``||``: NULL next to an array adds nothing, or an element."""
    left, right = query.kind(node.this), query.kind(node.expression)
    if Kind.ARRAY not in (left, right):
        if Kind.BINARY in (left, right):
            if left is not right:
                raise query.refusal(node, "one side is bytes, and the other is not",
                                    "cast both to BYTEA")  # fmt: skip
            return None
        _refuse_json(node, query)
        return function_rules.check_concat(node, query)
    if isinstance(node.this, exp.Null) or isinstance(node.expression, exp.Null):
        return (node.expression if isinstance(node.this, exp.Null) else node.this).copy()
    if left is right:
        return concat_arrays(node.this, node.expression)
    array, value = (node.this, node.expression) if left is Kind.ARRAY else (
        node.expression, node.this)  # fmt: skip
    if query.kind(value) in (Kind.UNKNOWN, Kind.OTHER) and not isinstance(value, exp.Null):
        raise query.refusal(node, "it depends on whether both are arrays",
                            "use array_append() or array_cat()")  # fmt: skip
    if query.kind(value) is Kind.STRING and literal_text(value) is not None:
        raise query.refusal(node, "Postgres reads the text as an array", "write ARRAY[…]")
    one = call("ARRAY", value.copy())
    return concat_arrays(array, one) if left is Kind.ARRAY else concat_arrays(one, array)


def _refuse_json(node: exp.Expr, query: Query) -> None:
    """A column of text may hold JSON, of which ``||`` merges the objects."""
    for each in (node.this, node.expression):
        text = literal_text(each) or ""
        if text.strip()[:1] in ("{", "[") and text.strip()[-1:] in ("}", "]"):
            raise query.refusal(node, "|| merges JSON, and joins texts",
                                "cast both to JSONB, or write concat() for texts")  # fmt: skip


def concat_arrays(a: exp.Expr, b: exp.Expr) -> exp.Expr:
    template = "CASE WHEN _a IS NULL THEN _b WHEN _b IS NULL THEN _a ELSE CONCAT(_a, _b) END"
    return from_template(template, a=a, b=b)


def _array_cat(node: exp.Expr, query: Query) -> exp.Expr:
    parts = [e for e in (node.this, *node.expressions) if not isinstance(e, exp.Null)]
    found = parts[0]
    for each in parts[1:]:
        found = concat_arrays(found, each)
    return found.copy()


def _array_append(node: exp.Expr, query: Query) -> exp.Expr:
    return concat_arrays(node.this, call("ARRAY", node.expression.copy()))


def _overlap(node: exp.Expr, query: Query) -> exp.Expr:
    """``&&``: NULLs are equal to nothing."""
    found = ranges.overlap(node, query)
    if found is not None:
        return found
    a, b = _sides(node, query)
    return from_template(_BOTH.format("COALESCE(ARRAYS_OVERLAP(_a, _b), FALSE)"), a=a, b=b)


def _sides(node: exp.Expr, query: Query) -> tuple[exp.Expr, exp.Expr]:
    sides: list[exp.Expr] = [node.this, node.expression]
    arrays_ = [each for each in sides if query.kind(each) is Kind.ARRAY]
    if not arrays_:
        unknown = next((e for e in sides if query.kind(e) is Kind.UNKNOWN), sides[0])
        query.require(node, unknown, (Kind.ARRAY,), "this needs arrays",
                      "compare the parts of JSON by ->>")  # fmt: skip
    left, right = (_as_array(each, arrays_[0], node, query) for each in sides)
    return left, right


def _as_array(value: exp.Expr, other: exp.Expr, node: exp.Expr, query: Query) -> exp.Expr:
    """An array; of a text such as ``'{1,2}'``, its elements."""
    text = literal_text(value)
    if text is None:
        return value
    kind = query.kinds.element(other)
    elements = _elements(text, kind)
    if elements is None:
        raise query.refusal(node, "Spark has no arrays as texts", "write ARRAY[…]")
    if not elements:
        return from_template(
            f"CAST(ARRAY() AS ARRAY<{'STRING' if kind is Kind.STRING else 'INT'}>)"
        )
    return exp.Array(expressions=elements)


def _elements(text: str, kind: Kind) -> list[exp.Expr] | None:
    """The elements of a text such as ``'{1,2}'``; None if they are not known to be of the kind."""
    parts = casts.elements_of(text)
    if parts is None or None in parts or kind not in (*WHOLE, Kind.STRING):
        return None
    texts = [each for each in parts if each is not None]
    if kind is Kind.STRING:
        return [exp.Literal.string(each) for each in texts]
    whole = all(map(casts.WHOLE_NUMBER.fullmatch, texts))
    return [exp.Literal.number(each) for each in texts] if whole else None


def rewrite_quantifier(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x = ANY('{a,b}')``, in addition to arrays and columns."""
    right = node.args["expression"]
    inner = right.this.unnest() if isinstance(right, exp.Any) else None
    text = literal_text(inner)
    if text is not None and isinstance(node, exp.EQ):
        values = _elements(text, query.kind(node.this))
        if values:
            return exp.paren(exp.In(this=node.this.copy(), expressions=values))
        raise query.refusal(node, "Spark has no arrays as texts", "write ARRAY[…]")
    return any_of(node, query) or array_rules.quantifier(node, query)


def ordered_quantifier(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x > ALL (array)`` and ``x < ANY (array)``."""
    every, inner = array_rules.quantifier_of(node.args["expression"], query)
    if inner is None or isinstance(inner, exp.Query):
        return None
    test = type(node)(this=exp.column("_x"), expression=exp.column("st_e"))
    name = "FORALL" if every else "EXISTS"
    return from_template(f"{name}(_a, st_e -> {test.sql('spark')})", a=inner, x=node.this)


def _bound(node: exp.Expr, query: Query, *, value: str) -> exp.Expr:
    if literal_int(node.expressions[1]) != 1:
        raise query.refusal(node, "Spark's arrays have one dimension", "use dimension 1")
    return from_template(f"CASE WHEN CARDINALITY(_a) > 0 THEN {value} END", a=node.expressions[0])


def _length(node: exp.Expr, query: Query) -> exp.Expr:
    if literal_int(node.expression) not in (None, 1):
        raise query.refusal(node, "Spark's arrays have one dimension", "use dimension 1")
    return exp.Nullif(this=call("CARDINALITY", node.this.copy()), expression=exp.Literal.number(0))


def _nulls(node: exp.Expr, query: Query, *, test: str) -> exp.Expr:
    """``num_nulls`` and ``num_nonnulls``."""
    ones = [
        from_template(f"CASE WHEN {test} THEN 1 ELSE 0 END", x=each) for each in node.expressions
    ]
    found = ones[0]
    for each in ones[1:]:
        found = exp.Add(this=found, expression=each)
    return exp.paren(found)


def _place(node: exp.Expr, query: Query) -> exp.Expr:
    """``array_position``: NULL is also found."""
    if node.args.get("zero_based"):  # sqlglot takes the start for it
        raise query.refusal(node, "Spark looks from the beginning", "omit the third argument")
    places = "ARRAY_POSITION(TRANSFORM(_a, st_e -> st_e <=> _x), TRUE)"
    return from_template(f"NULLIF({places}, 0)", a=node.this, x=node.expression)


def rewrite_contains(node: exp.Expr, query: Query) -> exp.Expr:
    """``@>`` of arrays, of a range, or of JSON and a constant object; ``<@``: the other way round.
    Of arrays, each element of the part occurs in the whole; NULL never does."""
    found = ranges.contains(node, query)
    if found is not None:
        return found
    of_arrays = Kind.ARRAY in (query.kind(node.this), query.kind(node.expression))
    sides = _sides(node, query) if of_arrays else (node.this, node.expression)
    whole, part = sides if isinstance(node, exp.ArrayContainsAll) else reversed(sides)
    if not of_arrays:
        return _of_json(node, whole, part, query)
    each = "st_e IS NOT NULL AND COALESCE(ARRAY_CONTAINS(_a, st_e), FALSE)"
    return from_template(_BOTH.format(f"FORALL(_b, st_e -> {each})"), a=whole, b=part)


def _of_json(node: exp.Expr, whole: exp.Expr, part: exp.Expr, query: Query) -> exp.Expr:
    query.require(node, whole, TEXTUAL, "this needs arrays or JSON", "compare columns")
    text = literal_text(part.this if isinstance(part, exp.Cast) else part)
    try:
        value = json.loads(text or "", parse_float=Decimal)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise query.refusal(node, "only a constant object is looked for in JSON",
                            "write one such as '{\"a\": 1}', or compare by ->>")  # fmt: skip
    tests = list(_tests(node, whole, "$", value, query))
    found = exp.and_(*tests, wrap=True)
    return from_template("CASE WHEN _j IS NOT NULL THEN COALESCE(_f, FALSE) END", j=whole, f=found)


def _tests(node: exp.Expr, whole: exp.Expr, path: str, value: Any, query: Query) -> list[exp.Expr]:
    """What must hold at a path for the value to be contained there."""
    kind = "SCHEMA_OF_VARIANT(" + _AT + ")"
    parts = {"j": whole, "p": path}
    if isinstance(value, dict):
        if any(set(key) & set("'\"\\") for key in value):
            raise query.refusal(node, "a key has a quote", "compare by ->>")
        below = [test for key, inner in value.items()
                 for test in _tests(node, whole, f"{path}['{key}']", inner, query)]  # fmt: skip
        return [from_template(f"{kind} LIKE 'OBJECT%'", **parts), *below]
    if value is None:
        return [from_template(f"{kind} = 'VOID'", **parts)]
    if isinstance(value, bool | str):
        name = "string" if isinstance(value, str) else "boolean"
        test = f"{kind} = '{name.upper()}' AND VARIANT_GET(PARSE_JSON(_j), _p, '{name}') = _v"
        return [from_template(test, v=exp.convert(value), **parts)]
    if isinstance(value, int | Decimal) and abs(value) < 10**18:
        test = (
            f"CASE WHEN {kind} IN {_NUMBERS} OR {kind} LIKE 'DECIMAL%' "
            "THEN TRY_VARIANT_GET(PARSE_JSON(_j), _p, 'decimal(38,18)') = _v ELSE FALSE END"
        )
        return [from_template(test, v=exp.Literal.number(format(value, "f")), **parts)]
    raise query.refusal(node, "only objects, texts and numbers are looked for in JSON",
                        "unnest the array, and compare its elements")  # fmt: skip


_REPLACED = "TRANSFORM(_a, st_e -> CASE WHEN st_e <=> _x THEN _y ELSE st_e END)"
_NUMBERED = "TRANSFORM(_a, (st_e, st_i) -> CASE WHEN st_e <=> _x THEN st_i + 1 END)"
_SORTED = (
    "TRANSFORM(SORT_ARRAY(TRANSFORM(_a, st_e -> NAMED_STRUCT('n', st_e IS NULL, 'v', st_e))), "
    "st_f -> st_f.v)"
)
_PREPENDED = "CASE WHEN _a IS NULL THEN ARRAY(_x) ELSE CONCAT(ARRAY(_x), _a) END"
_TRIMMED = "SLICE(_a, 1, CARDINALITY(_a) - _n)"

RULES: Rules = {
    exp.Bracket: element, exp.ArrayConcat: _array_cat, exp.ArrayAppend: _array_append,
    exp.ArrayOverlaps: _overlap, exp.ArraySize: _length,
    exp.ArrayRemove: template_rule("FILTER(_a, st_e -> NOT (st_e <=> _x))", "ax"),
    exp.ArrayPosition: _place, exp.ArrayContainsAll: rewrite_contains,
    exp.ArrayContainedBy: rewrite_contains,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "num_nulls": partial(_nulls, test="_x IS NULL"),
    "num_nonnulls": partial(_nulls, test="_x IS NOT NULL"),
    "array_upper": partial(_bound, value="CARDINALITY(_a)"),
    "array_lower": partial(_bound, value="1"),
    "array_prepend": template_rule(_PREPENDED, "xa"),
    "array_replace": template_rule(_REPLACED, "axy"),
    "array_positions": template_rule(f"ARRAY_COMPACT({_NUMBERED})", "ax"),
    "array_reverse": template_rule("REVERSE(_a)", "a"), "array_sort": template_rule(_SORTED, "a"),
    "trim_array": template_rule(_TRIMMED, "an"),
}  # fmt: skip
