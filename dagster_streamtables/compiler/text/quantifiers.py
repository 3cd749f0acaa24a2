"""Rewrite ``x op ANY (…)`` and ``x op ALL (…)``, which Spark lacks, to SQL that it supports.

Comparing with every row of a subquery takes four facts about it: its number of rows, how many are
not NULL, the least and the greatest value. ``= ANY`` becomes IN, ``<> ALL`` becomes NOT IN. The
result follows ISO 9075-2, 8.9 (quantified comparison predicate): without rows, ANY is false and
ALL true; otherwise one decisive comparison settles it; otherwise a NULL on either side makes it
unknown.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, named_struct

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def without_quantifiers(text: Text) -> Text:
    """The query with each quantified comparison rewritten."""
    if not any(_has_quantifier(node) or _is_bool_or(node) for node in text.tree.walk()):
        return text
    tree = text.tree.transform(
        lambda node: _rewrite_comparison(node) if _has_quantifier(node) else node
    )
    for call in list(filter(_is_bool_or, tree.walk())):
        call.replace(exp.Anonymous(this="bool_or", expressions=[call.this.unnest()]))
    return text.with_sql(tree.sql(DIALECT))


def _is_bool_or(node: exp.Expr) -> bool:
    """Whether it is the call ``ANY(x)``, not ``LIKE ANY ('a%', 'b%')``, which Spark supports."""
    like = isinstance(node.parent, exp.Like | exp.ILike) and node.arg_key == "expression"
    return isinstance(node, exp.Any) and not like


def _has_quantifier(node: exp.Expr) -> bool:
    return isinstance(node, _COMPARISONS) and (
        isinstance(node.expression, exp.Any | exp.All) or _is_all_of_array(node.expression)
    )


def _is_all_of_array(node: exp.Expr) -> bool:
    """Whether it is ``ALL (array)``, which sqlglot parses as a function call."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "all"


def _rewrite_comparison(node: exp.Expr) -> exp.Expr:
    if _is_all_of_array(node.expression):
        return _of_array(node, node.expression.expressions[0], True)
    every = isinstance(node.expression, exp.All)
    among = node.expression.this
    if not isinstance(among.unnest(), exp.Query):
        return _of_array(node, among, every)
    query = among.unnest()
    assert isinstance(query, exp.Query)
    if isinstance(node, exp.NEQ if every else exp.EQ):
        found = exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))
        return exp.Not(this=found) if every else found
    return _compare_with_facts(type(node), node.this, query, every)


def _of_array(node: exp.Expr, array: exp.Expr, every: bool) -> exp.Expr:
    element = exp.to_identifier("st_element")
    compared = type(node)(this=node.this.copy(), expression=element)
    holds = exp.Lambda(this=compared, expressions=[element.copy()])
    name = "forall" if every else "exists"
    return exp.Anonymous(this=name, expressions=[array.copy(), holds])


def _compare_with_facts(
    comparison: type[exp.Expr], value: exp.Expr, query: exp.Query, every: bool
) -> exp.Expr:
    facts = exp.Subquery(this=_facts(query))

    def fact(name: str) -> exp.Expr:
        return exp.Dot(this=facts.copy(), expression=exp.to_identifier(name))

    def holds(name: str) -> exp.Expr:
        return comparison(this=value.copy(), expression=fact(name))

    low_decides = issubclass(comparison, exp.LT | exp.LTE) == every
    if comparison in (exp.EQ, exp.NEQ):
        both = holds("low"), holds("high")
        decided = exp.and_(*both) if every else exp.or_(*both)
    else:
        decided = holds("low" if low_decides else "high")
    none = exp.EQ(this=fact("n"), expression=exp.Literal.number(0))
    null = exp.or_(
        exp.Is(this=value.copy(), expression=exp.null()),
        exp.LT(this=fact("known"), expression=fact("n")),
    )
    decisive = exp.Not(this=exp.paren(decided)) if every else decided
    return (
        exp.Case()
        .when(none, exp.true() if every else exp.false())
        .when(decisive, exp.false() if every else exp.true())
        .when(null, exp.cast(exp.null(), "BOOLEAN"))
        .else_(exp.true() if every else exp.false())
    )


def _facts(query: exp.Query) -> exp.Expr:
    """A query of one column → its rows, its non-NULL rows, its least and greatest value."""
    value = exp.column("st_value", "q")
    known, low, high = (kind(this=value.copy()) for kind in (exp.Count, exp.Min, exp.Max))
    facts = {"n": exp.Count(this=exp.Star()), "known": known, "low": low, "high": high}
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier("st_value")])
    below = exp.Subquery(this=query.copy(), alias=alias)
    return exp.select(named_struct(facts)).from_(below)
