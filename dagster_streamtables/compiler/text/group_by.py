"""The aggregate calls of a SELECT, and the keys of its GROUP BY, in the tree and in the text.

A key that the SELECT list omits is stored in a hidden column, so a full refresh selects it too.
Spark recognizes it as the key only if both parse to the same tree, so `in_own_words` takes the key
from the text. sqlglot's spelling differs: it prints ``DATE '2024-01-01'`` as
``CAST('2024-01-01' AS DATE)``. And a column that a FULL JOIN by names merges is a key under its
name alone: ``COALESCE(a.k, b.k)`` is not in GROUP BY k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.token_edits import (
    begins_windows,
    clause_at,
    depths,
    outermost,
)

_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""The clauses that wrap a call and belong to it."""


def function_of(node: exp.Expr) -> exp.Expr:
    """The function itself, without FILTER, WITHIN GROUP, or IGNORE NULLS."""
    while isinstance(node, _AROUND):
        node = node.this
    return node


def name_of_call(node: exp.Expr) -> str:
    """The name of the called function, in lower case; empty if the node is not a call."""
    if not isinstance(node, exp.Func):
        return ""
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def name_of_function(node: exp.Expr) -> str:
    """The name of the called function, which FILTER and the like may follow."""
    return name_of_call(function_of(node))


def is_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, including its FILTER, WITHIN GROUP and the like."""
    function = function_of(node)
    if isinstance(function, exp.Anonymous):
        return function.name.lower() in spark_functions.AGGREGATES
    return isinstance(function, exp.AggFunc)


def calls(part: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregate calls of an expression, outermost first, without those of its subqueries.

    A window function is not an aggregate call, but its arguments may contain one: in
    ``SUM(SUM(x)) OVER ()`` only the inner sum counts.
    """
    if isinstance(part, exp.Query):
        return
    if isinstance(part, exp.Window):
        below, function = list[exp.Expr](), part
        while isinstance(function, (exp.Window, *_AROUND)):
            below += [each for each in function.iter_expressions() if each.arg_key != "this"]
            function = function.this
        below += function.iter_expressions()
    elif is_call(part):
        yield part
        return
    else:
        below = list(part.iter_expressions())
    for each in below:
        yield from calls(each)


def own_calls(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregate calls of a SELECT, without those of its subqueries."""
    return (call for each in select.iter_expressions() for call in calls(each))


def own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT, without those of its subqueries."""
    for part in select.iter_expressions():
        yield from part.walk(prune=lambda each: isinstance(each, exp.Query))


def windows_by_name(select: exp.Select) -> dict[str, exp.Expr]:
    """The windows of the WINDOW clause, by their names in lower case."""
    return {each.name.lower(): each for each in select.args.get("windows") or []}


def is_of_window(node: exp.Expr) -> bool:
    """Whether a node is the function of a window, with or without its IGNORE NULLS and the like."""
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def has_groups(query: exp.Select) -> bool:
    """Whether a SELECT returns one row per group."""
    if query.args.get("group") or query.args.get("having"):
        return True
    parts = [*query.expressions, *(query.args.get(k) for k in ("qualify", "order"))]
    return any(next(calls(part), None) is not None for part in parts if part is not None)


_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)
_OF_SETS = (*_SETS, exp.Tuple)


def grouping_keys(clause: exp.Expr) -> Iterator[exp.Expr]:
    """The keys of a GROUP BY clause, those of its grouping sets included, without parentheses."""
    for each in clause.iter_expressions():
        of_set = isinstance(each, exp.Tuple) and isinstance(clause, _OF_SETS)
        if of_set or isinstance(each, _SETS):
            yield from grouping_keys(each)
        else:
            yield each.unnest() if isinstance(each, exp.Paren) else each


def has_sets(clause: exp.Expr) -> bool:
    """Whether a GROUP BY clause has grouping sets."""
    return any(each.find_ancestor(exp.Group) is clause for each in clause.find_all(*_SETS))


def sets_of(node: exp.Expr) -> list[list[exp.Expr]]:
    """The grouping sets of GROUPING SETS, CUBE or ROLLUP, or of one element of them.

    >>> rollup = exp.Rollup(expressions=[exp.column("a"), exp.column("b")])
    >>> [[key.name for key in keys] for keys in sets_of(rollup)]
    [['a', 'b'], ['a'], []]
    """
    if isinstance(node, exp.GroupingSets):
        return [each for part in node.expressions for each in sets_of(part)]
    if isinstance(node, exp.Cube | exp.Rollup):
        return sets_over(node, [_together(part) for part in node.expressions])
    return [_together(node)]


def sets_over(node: exp.Expr, parts: Sequence[list[exp.Expr]]) -> list[list[exp.Expr]]:
    """The grouping sets of CUBE or ROLLUP over some keys, of which several may go together."""
    sizes = range(len(parts), -1, -1)
    if isinstance(node, exp.Rollup):
        return [list(chain.from_iterable(parts[:size])) for size in sizes]
    some = chain.from_iterable(combinations(parts, size) for size in sizes)
    return [list(chain.from_iterable(each)) for each in some]


def _together(node: exp.Expr) -> list[exp.Expr]:
    inner = node.expressions if isinstance(node, exp.Tuple) else [node]
    return [each.unnest() for each in inner]


_AFTER = {"HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "QUALIFY", "WITH",
          ";"}  # fmt: skip


def in_own_words(said: Mapping[str, str], text: Text) -> dict[str, str]:
    """Named expressions in Spark SQL as the outermost GROUP BY spells them; unchanged unless it has
    exactly one match."""
    words = list(_keys(text))
    own = _once(words)
    return {name: own.get(_tree(s)) or _key_of_merge(s, words) or s for name, s in said.items()}


def _once(words: Sequence[str]) -> dict[str, str]:
    """The normal forms that one of the keys has."""
    often = Counter(map(_tree, words))
    return {_tree(each): each for each in words if often[_tree(each)] == 1}


def _key_of_merge(sql: str, words: Sequence[str]) -> str | None:
    """The key that names alone what joins by names merge in an expression."""
    tree, names = _parse_or_none(sql), set[str]()

    def alone(node: exp.Expr) -> exp.Expr:
        name = _common_column_name(node)
        names.update({name} if name else ())
        return exp.column(name, quoted=True) if name else node

    if tree is None:
        return None
    written = tree.transform(alone).sql(DIALECT)
    fit = [each for each in words if not names & _columns_with_tables(each)]
    return _once(fit).get(_tree(written)) if names else None


def _common_column_name(node: exp.Expr) -> str:
    """The name that all columns have, if the node is a COALESCE of nothing but columns."""
    kinds = exp.Coalesce | exp.Column | exp.Identifier
    if not isinstance(node, exp.Coalesce) or not all(isinstance(n, kinds) for n in node.walk()):
        return ""
    names = {each.name.lower() for each in node.find_all(exp.Column)}
    return names.pop() if len(names) == 1 else ""


def _columns_with_tables(sql: str) -> set[str]:
    """The columns that an expression names with their tables."""
    tree = _parse_or_none(sql)
    columns = tree.find_all(exp.Column) if tree is not None else ()
    return {each.name.lower() for each in columns if each.table}


def _tree(sql: str) -> str:
    """A normal form that ignores table aliases and case; the text itself if it does not parse."""
    tree = _parse_or_none(sql)
    if tree is None:
        return sql
    for column in tree.find_all(exp.Column):
        column.set("table", None)
        column.set("this", exp.to_identifier(column.name.lower(), quoted=True))
    return tree.sql(DIALECT)


def _parse_or_none(sql: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(sql, dialect=DIALECT)
    except SqlglotError:
        return None


def _keys(text: Text) -> Iterator[str]:
    tokens, levels = text.tokens, depths(text.tokens)
    for begin in outermost(tokens, TokenType.GROUP_BY):
        outside = (i for i in range(begin + 1, len(tokens)) if not levels[i])
        after = (i for i in outside if clause_at(tokens, i) in _AFTER or begins_windows(tokens, i))
        yield from _parts(text.sql, tokens[begin + 1 : next(after, None)])


def _parts(sql: str, tokens: Sequence[Token]) -> Iterator[str]:
    """The items of a comma-separated list, and those inside ``ROLLUP (a, b)`` and the like."""
    commas = outermost(tokens, TokenType.COMMA)
    for comma, following in pairwise([-1, *commas, len(tokens)]):
        part = tokens[comma + 1 : following]
        if part:
            yield sql[part[0].start : part[-1].end + 1]
        opening = next((i for i, t in enumerate(part) if t.token_type is TokenType.L_PAREN), None)
        if opening is not None and part[-1].token_type is TokenType.R_PAREN:
            yield from _parts(sql, part[opening + 1 : -1])
