"""The keys of GROUP BY as their author wrote them.

A key that the SELECT list omits is stored in a hidden column, so a full refresh selects it too.
Spark recognizes it as the key only if both parse to the same tree. sqlglot's spelling may not:
it prints ``DATE '2024-01-01'`` as ``CAST('2024-01-01' AS DATE)``, a different tree. And what a FULL
JOIN by names merges is a key under its name alone: ``COALESCE(a.k, b.k)`` is not in GROUP BY k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.clauses import deeper
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT

_AFTER = {"HAVING", "ORDER", "ORDER BY", "SORT", "SORT BY", "CLUSTER", "CLUSTER BY", "DISTRIBUTE",
          "DISTRIBUTE BY", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "WITH", ";"}  # fmt: skip


def in_own_words(said: Mapping[str, str], text: Text) -> dict[str, str]:
    """Expressions as GROUP BY spells them; unchanged unless GROUP BY has exactly one match.

    Args:
        said: Name → expression in Spark SQL.
        text: A query with GROUP BY at its outermost level.
    """
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
    depth, tokens = 0, text.tokens
    for i, token in enumerate(tokens):
        depth += deeper(token)
        if depth == 0 and token.token_type is TokenType.GROUP_BY:
            yield from _parts(text.sql, list(_until_end(tokens[i + 1 :])))


def _until_end(tokens: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        if depth == 0 and token.text.upper() in _AFTER:
            return
        depth += deeper(token)
        yield token


def _parts(sql: str, tokens: Sequence[Token]) -> Iterator[str]:
    """The items of a comma-separated list, and those inside ``ROLLUP (a, b)`` and the like."""
    depth, part = 0, list[Token]()
    for token in tokens:
        depth += deeper(token)
        if depth == 0 and token.token_type is TokenType.COMMA:
            yield from _part(sql, part)
            part = []
        else:
            part.append(token)
    yield from _part(sql, part)


def _part(sql: str, tokens: Sequence[Token]) -> Iterator[str]:
    if not tokens:
        return
    yield sql[tokens[0].start : tokens[-1].end + 1]
    first = next((i for i, each in enumerate(tokens) if deeper(each) > 0), None)
    if first is not None and tokens[-1].token_type is TokenType.R_PAREN:
        yield from _parts(sql, tokens[first + 1 : -1])
