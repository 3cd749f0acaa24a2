"""Strings and bytes of Postgres: regular expressions, positions, formats, quotes, and encodings."""

from __future__ import annotations

import re
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres import identifiers
from dagster_streamtables.compiler.dialect.rules import array_rules, function_rules, patterns
from dagster_streamtables.compiler.dialect.rules.array_rules import require_in_from
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

_CONSTANT = "write a constant"
_WORDS = r"[\p{L}\p{N}]+|[^\p{L}\p{N}]+"
_VALUES = ("%s", "%L", "%I")
_BYTES = (Kind.BINARY,), "this needs bytes", "name a column of bytes"


def match_substring(node: exp.Expr, pattern: exp.Expr, query: Query) -> exp.Expr:
    """``substring(s from 'pattern')``: the match, or its first group."""
    java = _pattern(node, pattern, query)
    if not _group_numbers(node, pattern, query):
        return call("REGEXP_SUBSTR", node.this.copy(), java)
    return from_template("CASE WHEN _s RLIKE _p THEN REGEXP_EXTRACT(_s, _p, 1) END", s=node.this,
                p=java)  # fmt: skip


def _pattern(node: exp.Expr, pattern: exp.Expr, query: Query) -> str:
    """A pattern whose matches, and not only their existence, are those of Java."""
    written = literal_text(pattern)
    if written is None:
        raise query.refusal(node, "a pattern that differs by row cannot be translated", _CONSTANT)
    java = function_rules.pattern_of(written, query, posix=True)
    if java is None or not patterns.one_way(written):
        raise query.refusal(
            node, "Java's regular expressions, which Spark uses, may match something else",
            "use one quantifier, no |, and classes such as [a-z]",
        )  # fmt: skip
    return java


def _pattern_of_each(node: exp.Expr, pattern: exp.Expr, query: Query) -> str:
    """A pattern of which each match is taken, and not only the first."""
    java = _pattern(node, pattern, query)
    if patterns.matches_nothing(pattern.name):
        raise query.refusal(node, "empty matches are counted differently in Java",
                            "write + instead of *, to match at least one character")  # fmt: skip
    return java


def replace_matches(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_replace``: without the flag g only the first match, which a lazy prefix finds."""
    flags = literal_text(node.args.get("modifiers")) if node.args.get("modifiers") else ""
    if node.args.get("position"):
        raise query.refusal(
            node, "Spark replaces from the beginning of the text", "leave the position out"
        )
    if flags is None or set(flags) - {"g", "i"}:
        raise query.refusal(node, "only the flags g and i are translated", "use g, i or none")
    java = ("(?iu)" if "i" in flags else "") + _pattern(node, node.expression, query)
    text = literal_text(node.args.get("replacement"))
    groups = 0 if "g" in flags else 1
    new = None if text is None else patterns.java_replacement(text, whole="&", shift=groups)
    if new is None:
        raise query.refusal(node, "the replacement must be known", _CONSTANT)
    if "g" not in flags:
        java, new = rf"\A((?s:.*?))({java})", f"$1{new}"
    return call("REGEXP_REPLACE", node.this.copy(), java, new)


def _match_function(
    node: exp.Expr, query: Query, *, name: str, more: tuple[int, ...] = ()
) -> exp.Expr:
    """A function of a text and a pattern that looks at each match, with more arguments in Spark."""
    if len(node.expressions) > 2:
        raise query.refusal(node, "positions and flags are not translated", "omit them")
    value, pattern = node.expressions
    return call(name, value.copy(), _pattern_of_each(node, pattern, query), *more)


split_by_pattern = partial(_match_function, name="SPLIT", more=(-1,))


def _match_groups(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_match``: an array of the groups, or of the whole match."""
    if len(node.expressions) > 2:
        raise query.refusal(node, "flags are not translated", "write them into the pattern")
    value, pattern = node.expressions
    java = _pattern(node, pattern, query)
    parts = [f"REGEXP_EXTRACT(_s, _p, {i})" for i in _group_numbers(node, pattern, query)]
    found = ", ".join(parts or ["REGEXP_SUBSTR(_s, _p)"])
    return from_template(f"CASE WHEN _s RLIKE _p THEN ARRAY({found}) END", s=value, p=java)


def _group_numbers(node: exp.Expr, pattern: exp.Expr, query: Query) -> range:
    groups = patterns.groups(pattern.name)
    if groups is None:
        raise query.refusal(node, "a group that matches nothing is '' in Spark, not NULL",
                            "quantify inside the group")  # fmt: skip
    return range(1, groups + 1)


def _all_matches(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_matches`` in FROM: a row for the first match, or for each with the flag g."""
    require_in_from(node, query)
    value, pattern, *flags = node.expressions
    if not flags:
        return call("EXPLODE", from_template("FILTER(ARRAY(_m), st_e -> st_e IS NOT NULL)",
                                    m=_match_groups(node, query)))  # fmt: skip
    if literal_text(flags[0]) != "g":
        raise query.refusal(node, "only the flag g is translated", "use g or none")
    java = _pattern_of_each(node, pattern, query)
    parts = [f"GET(REGEXP_EXTRACT_ALL(_s, _p, {i}), st_i)"
             for i in _group_numbers(node, pattern, query)]  # fmt: skip
    each = f"(st_e, st_i) -> ARRAY({', '.join(parts or ['st_e'])})"
    rows = f"TRANSFORM(REGEXP_EXTRACT_ALL(_s, _p, 0), {each})"
    return call("EXPLODE", from_template(rows, s=value, p=java))


def _likes(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_like(s, p)``."""
    flags = literal_text(node.expressions[2]) if len(node.expressions) > 2 else ""
    if flags not in ("", "i"):
        raise query.refusal(node, "only the flag i is translated", "use i or none")
    holder = exp.RegexpLike(this=node.expressions[0], expression=node.expressions[1])
    return function_rules.matches(holder, query, posix=True, ignore_case=bool(flags))


_INITCAP = (
    "ARRAY_JOIN(TRANSFORM(REGEXP_EXTRACT_ALL(_s, _p, 0), "
    "st_w -> CONCAT(UPPER(LEFT(st_w, 1)), LOWER(SUBSTRING(st_w, 2)))), '')"
)
"""A word is a run of letters and digits; in Spark, the text between blanks."""


def _ends(node: exp.Expr, query: Query, *, name: str) -> exp.Expr | None:
    """``left`` and ``right``: a negative count omits that many characters at the other end."""
    count = literal_int(node.expression)
    if count is not None and count >= 0:
        return None
    if count is not None:
        return from_template(f"{name}(_s, LENGTH(_s) - _n)", s=node.this, n=-count)
    template = f"{name}(_s, CASE WHEN _n < 0 THEN LENGTH(_s) + _n ELSE _n END)"
    return from_template(template, s=node.this, n=node.expression)


def _substring(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Positions before the first character count; in Spark they count from the end."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        template = "SUBSTRING(_s, 1, _n)"
        return None if length is None else from_template(template, s=node.this, n=length)
    if literal_text(start) is not None and length is None:
        return match_substring(node, start, query)
    first = literal_int(start)
    if first is not None and first >= 1:
        return None
    begin = {"s": node.this, "a": start}
    if length is None:
        return from_template("SUBSTRING(_s, CASE WHEN _a < 1 THEN 1 ELSE _a END)", **begin)
    if literal_int(length) is None:
        raise query.refusal(node, "Spark takes a negative length for 0", "write a constant length")
    template = "CASE WHEN _a < 1 THEN SUBSTRING(_s, 1, _a + _n - 1) ELSE SUBSTRING(_s, _a, _n) END"
    return from_template(template, n=length, **begin)


def _format(node: exp.Expr, query: Query) -> exp.Expr:
    """``format`` with %s, %L, %I and %%: NULL is written as nothing, or as NULL."""
    written = literal_text(node.expressions[0])
    values = list(node.expressions[1:])
    pieces = re.split(r"(%%|%s|%L|%I)", written) if written is not None else [""]
    known = ("%%", *_VALUES)
    if written is None or "%" in "".join(each for each in pieces if each not in known):
        raise query.refusal(node, "only %s, %L, %I and %% are translated",
                            "write || between the parts")  # fmt: skip
    if sum(map(pieces.count, _VALUES)) > len(values):
        raise query.refusal(node, "too few arguments for its %s", "add the missing arguments")
    parts: list[exp.Expr | str] = [""]
    for piece in pieces:
        if piece in _VALUES:
            value = values.pop(0)
            function_rules.as_text(node, value, query)
            parts.append(_format_value(piece, value))
        elif piece:
            parts.append("%" if piece == "%%" else piece)
    return call("CONCAT", *parts)


def _format_value(piece: str, value: exp.Expr) -> exp.Expr:
    if piece == "%L":
        return _literal(value, nullable=True)
    if piece == "%I":
        name = identifiers.quote_identifier(from_template("CAST(_x AS STRING)", x=value))
        null = "CAST(CAST('null values cannot be formatted as an SQL identifier' AS INT) AS STRING)"
        return from_template(f"COALESCE(_f, {null})", f=name)
    return from_template("COALESCE(CAST(_x AS STRING), '')", x=value)


def _quote_literal(node: exp.Expr, query: Query) -> exp.Expr:
    """``quote_literal`` and ``quote_nullable``."""
    [value] = node.expressions
    function_rules.as_text(node, value, query)
    return _literal(value, nullable=node.name.lower() == "quote_nullable")


def _literal(value: exp.Expr, *, nullable: bool) -> exp.Expr:
    """A value as a literal of Postgres; a backslash needs one that begins with E."""
    text = from_template("CAST(_x AS STRING)", x=value)
    doubled = from_template("REPLACE(REPLACE(_s, _q, _qq), _b, _bb)", s=text, q="'",
                   qq="''", b="\\", bb="\\\\")  # fmt: skip
    begin = from_template("CASE WHEN CONTAINS(_s, _b) THEN 'E' ELSE '' END", s=text, b="\\")
    found = call("CONCAT", begin, "'", doubled, "'")
    return from_template("COALESCE(_f, 'NULL')", f=found) if nullable else found


def split_by_text(node: exp.Expr, query: Query) -> exp.Expr:
    """``string_to_array``: '' has no part, and in Spark one."""
    value, separator, *null = node.expressions
    text = literal_text(separator)
    if text is None or "\\E" in text:
        raise query.refusal(node, "Spark splits by a pattern", "write a constant separator")
    empty = "CASE WHEN _s = '' THEN CAST(ARRAY() AS ARRAY<STRING>) ELSE "
    parts = (
        "CASE WHEN _s IS NOT NULL THEN ARRAY(_s) END END" if not text else "SPLIT(_s, _p, -1) END"
    )
    found = from_template(empty + parts, s=value, p=f"\\Q{text}\\E")
    if not null:
        return found
    return from_template("TRANSFORM(_a, st_e -> NULLIF(st_e, _n))", a=found, n=null[0])


def _encode(node: exp.Expr, query: Query) -> exp.Expr:
    value, form = node.expressions
    query.require(node, value, *_BYTES)
    if form.name == "hex":
        return from_template("LOWER(HEX(_x))", x=value)
    if form.name == "base64":  # in lines of 76 characters
        # Spark's lines end with two characters, or are not broken, as it is configured.
        plain = from_template("REPLACE(BASE64(_x), _e, '')", x=value, e="\r\n")
        return from_template("REGEXP_REPLACE(_t, _p, _r)", t=plain, p="(.{76})(?=.)", r="$1\n")
    raise query.refusal(node, "Spark has no such encoding", "use hex or base64")


def _decode(node: exp.Expr, query: Query) -> exp.Expr:
    """``decode(text, 'hex')``: an error for what is none, as in Postgres."""
    value, form = node.expressions
    if literal_text(form) != "hex":
        raise query.refusal(node, "Spark has no such encoding", "use hex")
    template = (
        "CASE WHEN _x IS NULL OR _x RLIKE '^([0-9A-Fa-f]{2})*$' THEN UNHEX(_x) "
        "ELSE CAST(CAST(CAST('this is not hexadecimal' AS INT) AS STRING) AS BINARY) END"
    )
    return from_template(template, x=value)


_CHR = (
    "CASE WHEN _x IS NULL THEN NULL WHEN _x = 0 "
    "THEN CAST(CAST('null character not permitted' AS INT) AS STRING) "
    "ELSE FORMAT_STRING('%c', _x) END"
)
"""Of any code point; Spark's stops at 255, and begins again."""


def _like(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LIKE ANY (ARRAY['a%', 'b%'])`` and ``LIKE ALL``: one LIKE for each pattern."""
    every, inner = array_rules.quantifier_of(node.expression, query)
    if inner is None:
        return None
    if not isinstance(inner, exp.Array) or not inner.expressions:
        raise query.refusal(node, "Spark needs constant patterns", "write ARRAY['a%', 'b%']")
    parts = [type(node)(this=node.this.copy(), expression=e.copy()) for e in inner.expressions]
    return exp.paren(exp.and_(*parts) if every else exp.or_(*parts))


def _convert_charset(node: exp.Expr, query: Query, *, function: str) -> exp.Expr:
    """``convert_from(bytes, 'UTF8')`` and ``convert_to``."""
    value, charset = node.expressions
    if (literal_text(charset) or "").upper().replace("-", "") != "UTF8":
        raise query.refusal(node, "only UTF-8 means the same in both", "write 'UTF8'")
    return call(function, value.copy(), "UTF-8")


RULES: Rules = {
    exp.Left: partial(_ends, name="LEFT"), exp.Right: partial(_ends, name="RIGHT"),
    exp.Substring: _substring,
    exp.Chr: template_rule(_CHR), exp.Like: _like, exp.ILike: _like,
    exp.Concat: function_rules.concat, exp.ConcatWs: function_rules.concat,
    exp.RegexpReplace: replace_matches,
    exp.RegexpLike: partial(function_rules.matches, posix=True),
    exp.RegexpILike: partial(function_rules.matches, posix=True, ignore_case=True),
    exp.SimilarTo: function_rules.similar,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "initcap": template_rule(_INITCAP, "s", p=_WORDS), "format": _format,
    "string_to_array": split_by_text, "encode": _encode, "decode": _decode,
    **{f"sha{bits}": template_rule(f"UNHEX(SHA2(_x, {bits}))", needs=_BYTES)
       for bits in (224, 256, 384, 512)},
    "convert_from": partial(_convert_charset, function="DECODE"),
    "convert_to": partial(_convert_charset, function="ENCODE"),
    "quote_literal": _quote_literal,
    "quote_nullable": _quote_literal,
    "regexp_match": _match_groups, "regexp_matches": _all_matches, "regexp_like": _likes,
    **{name: partial(_match_function, name=name.upper())
       for name in ("regexp_count", "regexp_substr", "regexp_instr")},
    "regexp_split_to_array": split_by_pattern,
}  # fmt: skip
