"""JSON of Postgres built of values: objects, arrays, and single values."""

from __future__ import annotations

import re
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres.json.json_text import TEXT, canonical
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_text,
)

_PLAIN = "_x"
_LOCAL = "CONCAT(REPLACE(CAST(_x AS STRING), ' ', 'T'){})"
# A float with an exponent would be another number in JSON than the same one without.
_FLOAT = (
    "PARSE_JSON(CASE WHEN ISNAN(_x) OR ABS(_x) = DOUBLE('Infinity') "
    "THEN CONCAT('\"', CAST(_x AS STRING), '\"') "
    "WHEN ABS(_x) >= 1E7 AND ABS(_x) < 1E18 "
    "THEN CAST(CAST(CAST(_x AS STRING) AS DECIMAL(38, 18)) AS STRING) "
    "WHEN ABS(_x) > 1E-20 AND ABS(_x) < 1E-3 "
    "THEN CAST(CAST(CAST(_x AS STRING) AS DECIMAL(38, 37)) AS STRING) "
    "ELSE CAST(_x AS STRING) END)"
)
_TEMPLATES = {
    **dict.fromkeys((*WHOLE, Kind.DECIMAL, Kind.STRING, Kind.BOOL), _PLAIN),
    Kind.DATE: "CAST(_x AS STRING)",
    Kind.LOCAL: _LOCAL.format(""),
    Kind.INSTANT: _LOCAL.format(", DATE_FORMAT(_x, 'xxxxx')"),
    **dict.fromkeys((Kind.DOUBLE, Kind.FLOAT), _FLOAT),
    Kind.JSON: "PARSE_JSON(_x)",
    Kind.BINARY: "CONCAT(CHR(92), 'x', LOWER(HEX(_x)))",
}
_OTHERS = "Spark writes it differently into JSON"
_FIX = "cast it to TEXT or NUMERIC, or use to_char()"
_WRITTEN = "TO_JSON(_o, MAP('ignoreNullFields', 'false'))"


def template_of(node: exp.Expr, value: exp.Expr, query: Query) -> str:
    """The template over ``_x`` of what Postgres writes into JSON. An interval, or a value of an
    unknown type, is refused: its text would differ."""
    if query.kind(value) is Kind.ARRAY:
        element = query.kinds.element(value)
        inner = _TEMPLATES.get(element)
        if inner is None:
            raise query.refusal(node, f"its elements are {element.value}, and {_OTHERS}", _FIX)
        if inner == _PLAIN:
            return _PLAIN
        return f"TRANSFORM(_x, st_x -> {apply_template(inner, 'st_x')})"
    return _TEMPLATES[query.require(node, value, _TEMPLATES, _OTHERS, _FIX)]


def apply_template(template: str, name: str) -> str:
    """The template over another name; ``st_x`` in it is not ``_x``."""
    return re.sub(rf"\b{_PLAIN}\b", name, template)


def value_of(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """A value that Spark writes into JSON as Postgres does."""
    if isinstance(value, exp.Null):
        return exp.cast(value.copy(), "STRING")
    template = template_of(node, value, query)
    return value.copy() if template == _PLAIN else from_template(template, x=value)


def _object(node: exp.Expr, query: Query, *, binary: bool) -> exp.Expr:
    """``jsonb_build_object('a', x)``: keys with NULL stay."""
    parts = node.expressions
    keys = [literal_text(each) for each in parts[::2]]
    if len(parts) % 2 or None in keys or len(set(keys)) < len(keys):
        raise query.refusal(node, "Spark needs constant keys, each once", "write constant keys")
    query.note(TEXT)
    pairs = [each for key, value in zip(parts[::2], parts[1::2], strict=True)
             for each in (key.copy(), value_of(node, value, query))]  # fmt: skip
    if not pairs:
        return exp.Literal.string("{}")
    written = from_template(_WRITTEN, o=call("NAMED_STRUCT", *pairs))
    return canonical(written) if binary else written


def _array(node: exp.Expr, query: Query, *, binary: bool) -> exp.Expr:
    query.note(TEXT)
    listed = _write_array(node, query)
    return canonical(listed) if binary else listed


def _write_array(node: exp.Expr, query: Query) -> exp.Expr:
    if not node.expressions:
        return exp.Literal.string("[]")
    values = [value_of(node, each, query) for each in node.expressions]
    written = [from_template(_WRITTEN, o=call("NAMED_STRUCT", "v", e)) for e in values]
    # The values may differ in type, so each is written alone, without {"v": and }.
    inner = [from_template("SUBSTRING(_v, 6, LENGTH(_v) - 6)", v=each) for each in written]
    return call("CONCAT", "[", call("CONCAT_WS", ",", *inner), "]")


def _single(node: exp.Expr, query: Query, *, binary: bool) -> exp.Expr:
    """``to_jsonb(x)``."""
    value = node.expressions[0]
    if query.kind(value) is Kind.JSON:
        return value.copy()
    query.note(TEXT)
    template = "CASE WHEN _x IS NOT NULL THEN SUBSTRING(_v, 2, LENGTH(_v) - 2) END"
    written = from_template(template, x=value, v=_write_array(node, query))
    return canonical(written) if binary else written


def _of_array(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``array_to_json``."""
    value, *pretty = node.expressions
    query.require(node, value, (Kind.ARRAY,), "this needs an array", "use to_json()")
    if pretty and not (isinstance(pretty[0], exp.Boolean) and not pretty[0].this):
        raise query.refusal(node, "Spark breaks no lines in JSON", "omit the second argument")
    one = node.copy()
    one.set("expressions", [value])
    return _single(one, query, binary=False)


CALLS: dict[str, Rule] = {
    "array_to_json": _of_array,
    **{name.format(kind): partial(rule, binary=bool(kind)) for kind in ("", "b") for name, rule in {
        "json{}_build_object": _object, "json{}_build_array": _array, "to_json{}": _single,
    }.items()},
}  # fmt: skip
