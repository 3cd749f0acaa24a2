"""Strings of Postgres: positions, words, formats, and regular expressions."""

from __future__ import annotations

import re

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules import functions, patterns
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import made, number, string
from dagster_streamtables.compiler.dialect.rules.query import (
    Query,
    Rule,
    call,
    literal_int,
    literal_text,
)

_WORDS = r"[\p{L}\p{N}]+|[^\p{L}\p{N}]+"
_CONSTANT = "write a constant"


def initcap(node: exp.Expr, query: Query) -> exp.Expr:
    """A word is a run of letters and digits; in Spark, what is between blanks."""
    template = (
        "ARRAY_JOIN(TRANSFORM(REGEXP_EXTRACT_ALL(_s, _p, 0), "
        "st_w -> CONCAT(UPPER(LEFT(st_w, 1)), LOWER(SUBSTRING(st_w, 2)))), '')"
    )
    return made(template, s=node.expressions[0], p=string(_WORDS))


def _ends(name: str) -> Rule:
    """``left`` and ``right``: a negative count omits that many characters at the other end."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr | None:
        count = literal_int(node.expression)
        if count is not None and count >= 0:
            return None
        if count is not None:
            return made(f"{name}(_s, LENGTH(_s) - _n)", s=node.this, n=number(-count))
        template = f"{name}(_s, CASE WHEN _n < 0 THEN LENGTH(_s) + _n ELSE _n END)"
        return made(template, s=node.this, n=node.expression)

    return rule


def _substring(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Positions before the first character count; in Spark they count from the end."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        return made("SUBSTRING(_s, 1, _n)", s=node.this, n=length) if length is not None else None
    if literal_text(start) is not None and length is None:
        return _found(node, start, query)
    first = literal_int(start)
    if first is not None and first >= 1:
        return None
    begin = {"s": node.this, "a": start}
    if length is None:
        return made("SUBSTRING(_s, CASE WHEN _a < 1 THEN 1 ELSE _a END)", **begin)
    if literal_int(length) is None:
        raise query.refusal(node, "Spark takes a negative length for 0", "write a constant length")
    template = "CASE WHEN _a < 1 THEN SUBSTRING(_s, 1, _a + _n - 1) ELSE SUBSTRING(_s, _a, _n) END"
    return made(template, n=length, **begin)


def _found(node: exp.Expr, pattern: exp.Expr, query: Query) -> exp.Expr:
    """``substring(s from 'pattern')``: the match, or its first group."""
    java = _pattern(node, pattern, query)
    if "(" not in re.sub(r"\\.|\[[^\]]*\]|\(\?", "", pattern.name):
        return call("REGEXP_SUBSTR", node.this.copy(), string(java))
    return made("CASE WHEN _s RLIKE _p THEN REGEXP_EXTRACT(_s, _p, 1) END", s=node.this,
                p=string(java))  # fmt: skip


def _pattern(node: exp.Expr, pattern: exp.Expr, query: Query, flags: str = "") -> str:
    """A pattern whose matches, and not only their existence, are those of Java."""
    written = literal_text(pattern)
    if written is None:
        raise query.refusal(node, "a pattern that differs by row cannot be translated", _CONSTANT)
    java = patterns.java_pattern(written, posix=True)
    if java is None or not patterns.one_way(written):
        raise query.refusal(
            node, "Java's regular expressions, which Spark uses, may match something else",
            "use one quantifier, no |, and classes such as [a-z]",
        )  # fmt: skip
    return flags + java


def _replaced(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_replace``: without the flag g only the first match, which a lazy prefix finds."""
    flags = literal_text(node.args.get("modifiers")) if node.args.get("modifiers") else ""
    if flags is None or set(flags) - {"g", "i"} or node.args.get("position"):
        raise query.refusal(node, "only the flags g and i are translated", "use g, i or none")
    ignore = "(?iu)" if "i" in flags else ""
    java = _pattern(node, node.expression, query, ignore)
    text = literal_text(node.args.get("replacement"))
    groups = 0 if "g" in flags else 1
    new = None if text is None else patterns.java_replacement(text, whole="&", shift=groups)
    if new is None:
        raise query.refusal(node, "the replacement must be known", _CONSTANT)
    if "g" not in flags:
        java, new = rf"\A((?s:.*?))({java})", f"$1{new}"
    return call("REGEXP_REPLACE", node.this.copy(), string(java), string(new))


def _counted(name: str) -> Rule:
    """A function of a text and a pattern that looks at each match."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        if len(node.expressions) > 2:
            raise query.refusal(node, "positions and flags are not translated", "omit them")
        value, pattern = node.expressions
        java = _pattern(node, pattern, query)
        if patterns.matches_nothing(pattern.name):
            raise query.refusal(
                node, "empty matches are counted differently in Java",
                "write + in place of *, or a pattern that matches at least one character",
            )  # fmt: skip
        return call(name, value.copy(), string(java))

    return rule


def _split_by_pattern(node: exp.Expr, query: Query) -> exp.Expr:
    found = _counted("SPLIT")(node, query)
    assert found is not None
    found.append("expressions", number(-1))
    return found


def _matched(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_match``: an array of the groups, or of the whole match."""
    if len(node.expressions) > 2:
        raise query.refusal(node, "flags are not translated", "write them into the pattern")
    value, pattern = node.expressions
    java = _pattern(node, pattern, query)
    plain = re.sub(r"\\.|\[[^\]]*\]|\(\?:", "", pattern.name)
    groups = plain.count("(")
    if re.search(r"\)[?*{]", plain):
        raise query.refusal(node, "a group that matches nothing is '' in Spark, not NULL",
                            "quantify inside the group")  # fmt: skip
    parts = [f"REGEXP_EXTRACT(_s, _p, {i})" for i in range(1, groups + 1)]
    found = ", ".join(parts or ["REGEXP_SUBSTR(_s, _p)"])
    return made(f"CASE WHEN _s RLIKE _p THEN ARRAY({found}) END", s=value, p=string(java))


def _likes(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_like(s, p)``."""
    flags = literal_text(node.expressions[2]) if len(node.expressions) > 2 else ""
    if flags not in ("", "i"):
        raise query.refusal(node, "only the flag i is translated", "use i or none")
    holder = exp.RegexpLike(this=node.expressions[0], expression=node.expressions[1])
    found = exp.RegexpLike(this=node.expressions[0].copy(),
                           expression=string("(?iu)" * bool(flags) + functions.java(
                               holder, query, posix=True)))  # fmt: skip
    return exp.paren(found)


def _format(node: exp.Expr, query: Query) -> exp.Expr:
    """``format`` with %s and %%: NULL is written as nothing."""
    written = literal_text(node.expressions[0])
    values = list(node.expressions[1:])
    pieces = re.split(r"(%%|%s)", written) if written is not None else [""]
    if written is None or "%" in "".join(each for each in pieces if each not in ("%%", "%s")):
        raise query.refusal(node, "only %s and %% are translated", "write || between the parts")
    if pieces.count("%s") > len(values):
        raise query.refusal(node, "too few arguments for its %s", "add the missing arguments")
    parts: list[exp.Expr] = [string("")]
    for piece in pieces:
        if piece == "%s":
            value = values.pop(0)
            functions.as_text(node, value, query)
            parts.append(made("COALESCE(CAST(_x AS STRING), '')", x=value))
        elif piece:
            parts.append(string("%" if piece == "%%" else piece))
    return call("CONCAT", *parts)


def _split(node: exp.Expr, query: Query) -> exp.Expr:
    """``string_to_array``: of '' there is no part, and in Spark one."""
    value, separator, *null = node.expressions
    text = literal_text(separator)
    if text is None or "\\E" in text:
        raise query.refusal(node, "Spark splits by a pattern", "write a constant separator")
    empty = "CASE WHEN _s = '' THEN CAST(ARRAY() AS ARRAY<STRING>) ELSE "
    parts = (
        "CASE WHEN _s IS NOT NULL THEN ARRAY(_s) END END" if not text else "SPLIT(_s, _p, -1) END"
    )
    found = made(empty + parts, s=value, p=string(f"\\Q{text}\\E"))
    return made("TRANSFORM(_a, st_e -> NULLIF(st_e, _n))", a=found, n=null[0]) if null else found


def _hex(node: exp.Expr, query: Query) -> exp.Expr:
    value = node.expressions[0]
    kind = query.require(node, value, WHOLE, "this needs a whole number", "cast it to INT")
    if kind is Kind.INT:
        return made("LOWER(HEX(CAST(_x AS BIGINT) & 4294967295))", x=value)
    return made("LOWER(HEX(_x))", x=value)


def _encoded(node: exp.Expr, query: Query) -> exp.Expr:
    value, form = node.expressions
    query.require(node, value, (Kind.BINARY,), "this needs bytes", "name a column of bytes")
    if form.name == "hex":
        return made("LOWER(HEX(_x))", x=value)
    if form.name == "base64":  # in lines of 76 characters
        # Spark's lines end with two characters, or are not broken, as it is configured.
        plain = made("REPLACE(BASE64(_x), _e, '')", x=value, e=string("\r\n"))
        return made("REGEXP_REPLACE(_t, _p, _r)", t=plain, p=string("(.{76})(?=.)"),
                    r=string("$1\n"))  # fmt: skip
    raise query.refusal(node, "Spark has no such encoding", "use hex or base64")


def _hashed(bits: int) -> Rule:
    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        query.require(node, node.expressions[0], (Kind.BINARY,), "this needs bytes",
                      "name a column of bytes")  # fmt: skip
        return made(f"UNHEX(SHA2(_x, {bits}))", x=node.expressions[0])

    return rule


def _character(node: exp.Expr, query: Query) -> exp.Expr:
    """``chr``: of any code point; Spark's stops at 255, and begins again."""
    value = node.this if isinstance(node.this, exp.Expr) else node.expressions[0]
    template = (
        "CASE WHEN _x IS NULL THEN NULL WHEN _x = 0 "
        "THEN CAST(CAST('null character not permitted' AS INT) AS STRING) "
        "ELSE FORMAT_STRING('%c', _x) END"
    )
    return made(template, x=value)


def _like(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LIKE ANY (ARRAY['a%', 'b%'])`` and ``LIKE ALL``: one LIKE for each pattern."""
    right = node.expression
    every = isinstance(right, exp.All) or (
        isinstance(right, exp.Anonymous) and right.name.upper() == "ALL"
    )
    if not isinstance(right, exp.Any) and not every:
        return None
    inner = right.expressions[0] if isinstance(right, exp.Anonymous) else right.this.unnest()
    if not isinstance(inner, exp.Array) or not inner.expressions:
        raise query.refusal(node, "Spark needs constant patterns", "write ARRAY['a%', 'b%']")
    parts = [type(node)(this=node.this.copy(), expression=e.copy()) for e in inner.expressions]
    return exp.paren(exp.and_(*parts) if every else exp.or_(*parts))


def _converted(function: str) -> Rule:
    """``convert_from(bytes, 'UTF8')`` and ``convert_to``."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        value, charset = node.expressions
        if (literal_text(charset) or "").upper().replace("-", "") != "UTF8":
            raise query.refusal(node, "only UTF-8 means the same in both", "write 'UTF8'")
        return call(function, value.copy(), string("UTF-8"))

    return rule


RULES: Rules = {
    exp.Left: _ends("LEFT"), exp.Right: _ends("RIGHT"), exp.Substring: _substring,
    exp.RegexpReplace: _replaced, exp.Chr: _character, exp.Like: _like, exp.ILike: _like,
    exp.Concat: functions.concat, exp.ConcatWs: functions.concat,
    exp.RegexpLike: functions.matches(posix=True),
    exp.RegexpILike: functions.matches(posix=True, ignore_case=True),
    exp.SimilarTo: functions.similar,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "initcap": initcap, "format": _format, "string_to_array": _split, "regexp_match": _matched,
    "regexp_count": _counted("REGEXP_COUNT"), "regexp_substr": _counted("REGEXP_SUBSTR"),
    "regexp_instr": _counted("REGEXP_INSTR"), "regexp_like": _likes, "to_hex": _hex,
    "encode": _encoded, "sha224": _hashed(224), "sha256": _hashed(256), "sha384": _hashed(384),
    "sha512": _hashed(512), "regexp_split_to_array": _split_by_pattern,
    "convert_from": _converted("DECODE"), "convert_to": _converted("ENCODE"),
}  # fmt: skip
