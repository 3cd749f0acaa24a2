"""Regular expressions of Postgres: what matches, where, how often, and what is put in its place."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres.clauses import require_in_from
from dagster_streamtables.compiler.dialect.rules import functions, patterns
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import from_template, number, string
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, call, literal_text

_CONSTANT = "write a constant"


def match_substring(node: exp.Expr, pattern: exp.Expr, query: Query) -> exp.Expr:
    """``substring(s from 'pattern')``: the match, or its first group."""
    java = _pattern(node, pattern, query)
    if not patterns.groups(pattern.name):
        return call("REGEXP_SUBSTR", node.this.copy(), string(java))
    return from_template("CASE WHEN _s RLIKE _p THEN REGEXP_EXTRACT(_s, _p, 1) END", s=node.this,
                p=string(java))  # fmt: skip


def _pattern(node: exp.Expr, pattern: exp.Expr, query: Query, flags: str = "") -> str:
    """A pattern whose matches, and not only their existence, are those of Java."""
    written = literal_text(pattern)
    if written is None:
        raise query.refusal(node, "a pattern that differs by row cannot be translated", _CONSTANT)
    java = functions.pattern_of(written, query, posix=True)
    if java is None or not patterns.one_way(written):
        raise query.refusal(
            node, "Java's regular expressions, which Spark uses, may match something else",
            "use one quantifier, no |, and classes such as [a-z]",
        )  # fmt: skip
    return flags + java


def replace_matches(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_replace``: without the flag g only the first match, which a lazy prefix finds."""
    flags = literal_text(node.args.get("modifiers")) if node.args.get("modifiers") else ""
    if node.args.get("position"):
        raise query.refusal(
            node, "Spark replaces from the beginning of the text", "leave the position out"
        )
    if flags is None or set(flags) - {"g", "i"}:
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


def _match_function(name: str) -> Rule:
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


def split_by_pattern(node: exp.Expr, query: Query) -> exp.Expr:
    found = _match_function("SPLIT")(node, query)
    assert found is not None
    found.append("expressions", number(-1))
    return found


def _match_groups(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_match``: an array of the groups, or of the whole match."""
    if len(node.expressions) > 2:
        raise query.refusal(node, "flags are not translated", "write them into the pattern")
    value, pattern = node.expressions
    java = _pattern(node, pattern, query)
    parts = [f"REGEXP_EXTRACT(_s, _p, {i})" for i in _group_numbers(node, pattern, query)]
    found = ", ".join(parts or ["REGEXP_SUBSTR(_s, _p)"])
    return from_template(f"CASE WHEN _s RLIKE _p THEN ARRAY({found}) END", s=value, p=string(java))


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
    java = _pattern(node, pattern, query)
    if patterns.matches_nothing(pattern.name):
        raise query.refusal(node, "empty matches are counted differently in Java",
                            "write + in place of *")  # fmt: skip
    parts = [f"GET(REGEXP_EXTRACT_ALL(_s, _p, {i}), st_i)"
             for i in _group_numbers(node, pattern, query)]  # fmt: skip
    each = f"(st_e, st_i) -> ARRAY({', '.join(parts or ['st_e'])})"
    rows = f"TRANSFORM(REGEXP_EXTRACT_ALL(_s, _p, 0), {each})"
    return call("EXPLODE", from_template(rows, s=value, p=string(java)))


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


REGEX_RULES: Rules = {
    exp.RegexpReplace: replace_matches, exp.RegexpLike: functions.matches(posix=True),
    exp.RegexpILike: functions.matches(posix=True, ignore_case=True),
    exp.SimilarTo: functions.similar,
}  # fmt: skip
REGEX_CALLS: dict[str, Rule] = {
    "regexp_match": _match_groups, "regexp_matches": _all_matches, "regexp_like": _likes,
    "regexp_count": _match_function("REGEXP_COUNT"),
    "regexp_substr": _match_function("REGEXP_SUBSTR"),
    "regexp_instr": _match_function("REGEXP_INSTR"), "regexp_split_to_array": split_by_pattern,
}  # fmt: skip
