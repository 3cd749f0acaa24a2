"""Arrays: indexing, comparisons with their elements, and unnesting."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.dialect import equal_rows
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    call,
    from_template,
    literal_int,
)

_GENERATORS = ("explode", "inline", "generate_subscripts", "string_to_table",
               "regexp_split_to_table")  # fmt: skip
_AS_VIEW = "write it as a view in Spark SQL"
_CONTAINS = "CASE WHEN CARDINALITY(_a) = 0 THEN FALSE ELSE ARRAY_CONTAINS(_a, _x) END"
"""For an empty array the result is FALSE, even if the value is NULL."""


def element(node: exp.Expr, query: Query) -> exp.Expr:
    """``arr[1]``: Spark counts from 0, and fails if the element does not exist. sqlglot has already
    subtracted 1, but only from constants."""
    index = literal_int(node.expressions[0]) if len(node.expressions) == 1 else None
    if index is None or (index < 0 and query.dialect != "postgres"):
        raise query.refusal(
            node,
            "Spark counts elements from 0",
            "use a constant of at least 1",
            called="this index",
        )
    return call("GET", node.this.copy(), index)


def quantifier(node: exp.Expr, query: Query, *, of_columns: bool = True) -> exp.Expr | None:
    """``x = ANY(array)`` and ``x <> ALL(array)``, of literals or also `of_columns`; also
    comparisons of rows."""
    array = _array(node, query)
    if array is None:
        return equal_rows(node, query)
    value = node.this.copy()
    if isinstance(array, exp.Array) and array.expressions:
        found: exp.Expr = exp.In(this=value, expressions=[e.copy() for e in array.expressions])
    elif of_columns:
        found = from_template(_CONTAINS, a=array, x=value)
    else:
        raise query.refusal(node, "Spark treats NULL differently there", _AS_VIEW)
    return exp.Not(this=exp.paren(found)) if isinstance(node, exp.NEQ) else exp.paren(found)


def quantifier_of(right: exp.Expr, query: Query) -> tuple[bool, exp.Expr | None]:
    """Whether it is ALL, and the operand of ANY or ALL; None for any other expression."""
    if isinstance(right, exp.Any | exp.All):
        every, inner, is_value = isinstance(right, exp.All), right.this.unnest(), False
        if isinstance(right.this, exp.Subquery):
            is_value = isinstance(right.this.this, exp.Subquery)
    else:
        every = isinstance(right, exp.Anonymous) and right.name.upper() == "ALL"
        inner = right.expressions[0] if every and right.expressions else None
        is_value = isinstance(inner, exp.Query)
    if is_value:
        raise query.refusal(
            right,
            "a query in two pairs of parentheses can be one array",
            "write one pair, or unnest the array in the query",
        )
    return every, inner


def any_or_all(node: exp.Expr, query: Query) -> None:
    """ANY and ALL are rewritten by the enclosing comparison if it can, or by the compiler."""
    inner = node.this.unnest()
    by_comparison = isinstance(node.parent, exp.EQ) and isinstance(node, exp.Any)
    if not isinstance(inner, exp.Query) and not by_comparison:
        raise query.refusal(node, "Spark supports it for subqueries only", "unnest the array")


def all_of_array(node: exp.Expr, query: Query) -> None:
    """``ALL (array)``, which sqlglot parses as a function call."""
    if node.name.upper() != "ALL" or not isinstance(node.parent, exp.NEQ):
        raise query.no_rule_error(node)


def _array(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The array of ``= ANY`` or ``<> ALL``; None for any other comparison."""
    every, inner = quantifier_of(node.args["expression"], query)
    fits = isinstance(node, exp.NEQ if every else exp.EQ)
    return inner if fits and not isinstance(inner, exp.Query) else None


def rows_of(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``unnest`` in FROM: each row joined with its elements."""
    if isinstance(node.parent, exp.Lateral):
        return None
    if not isinstance(node.parent, exp.From | exp.Join):
        raise query.refusal(node, "Spark's explode has different rules", "unnest in FROM")
    return _explode_relation(node, node.args.get("alias"), query)


def lateral_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LATERAL unnest(…)``; LATERAL subqueries stay unchanged."""
    if isinstance(node.this, exp.Unnest):
        return _explode_relation(node.this, node.args.get("alias"), query)
    if not isinstance(node.this, exp.Subquery):
        raise query.no_rule_error(node)
    return None


def _explode_relation(node: exp.Expr, alias: exp.Expr | None, query: Query) -> exp.Expr:
    if len(node.expressions) != 1 or alias is None or not alias.name:
        raise query.refusal(
            node, "Spark unnests one array at a time", "unnest one array, with an alias"
        )
    names = [each.copy() for each in alias.args.get("columns") or []]
    names = names or [alias.this.copy()]
    array, offset = node.expressions[0].copy(), node.args.get("offset")
    if not offset:
        explode = call("EXPLODE", array)
        return relation(explode, alias.this.copy(), names[:1], inside=node)
    place = offset.copy() if isinstance(offset, exp.Identifier) else exp.to_identifier("ordinality")
    names = [*names[:1], names[1] if len(names) > 1 else place]
    return relation(call("INLINE", _number_elements(array)), alias.this.copy(), names, inside=node)


def _number_elements(array: exp.Expr) -> exp.Expr:
    """The elements with their positions, from 1, as a scalar expression.

    POSEXPLODE counts from 0, and a subquery that adds 1 to it could not be maintained.
    """
    element, place = (exp.to_identifier(name) for name in ("st_element", "st_place"))
    from_one = from_template("CAST(st_place + 1 AS BIGINT)")
    pair = call("NAMED_STRUCT", "element", element.copy(), "place", from_one)
    return call("TRANSFORM", array, exp.Lambda(this=pair, expressions=[element, place]))


def relation(
    rows: exp.Expr, alias: exp.Expr, columns: list[exp.Expr], *, inside: exp.Expr
) -> exp.Expr:
    """The rows of a function as an item of FROM, in the place of a node."""
    aliased = exp.TableAlias(this=alias, columns=columns)
    if isinstance(inside.parent, exp.From):
        return exp.Table(this=rows, alias=aliased)
    return exp.Lateral(this=rows, alias=aliased)


def require_in_from(node: exp.Expr, query: Query) -> exp.Expr:
    """The item of FROM around a function that returns rows; elsewhere it is refused."""
    unnests = isinstance(node, exp.Explode)  # in FROM it is an `exp.Unnest`
    if unnests or not isinstance(node.parent, exp.Table | exp.Lateral):
        alias = ": FROM t, unnest(t.array) AS e(element)" if unnests else ", with an alias"
        raise query.refusal(node, "Spark makes rows in FROM", f"put it in FROM{alias}")
    return node.parent


def require_alone(node: exp.Expr, query: Query) -> None:
    """Refuse a function that returns rows, unless it is in FROM or the only one of the outputs: in
    other databases, the rows of several advance side by side."""
    output = node
    while isinstance(output.parent, exp.Paren | exp.Alias):
        output = output.parent
    select = output.parent
    if not isinstance(select, exp.Select):
        require_in_from(node, query)
        return
    calls = [
        each
        for output in select.selects
        for each in output.find_all(exp.Explode, exp.ExplodingGenerateSeries, exp.Anonymous)
        if not isinstance(each.parent, exp.Table | exp.Lateral)
        and each.find_ancestor(exp.Select) is select
        and (not isinstance(each, exp.Anonymous) or each.name.lower() in _GENERATORS)
    ]
    if len(calls) > 1:
        raise query.refusal(node, "the rows of several functions advance side by side there",
                            "put them in FROM, each with an alias")  # fmt: skip
