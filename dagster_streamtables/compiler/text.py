"""The user's own text: which tables it names, where, and the same text over other tables.

sqlglot reads SQL well but does not give Spark's SQL back unchanged: printed again, a query can have
another meaning. So a full refresh, and with it every check of equality, runs the text as it was
written, with nothing exchanged but the table names, at the positions where the parser found them.
That makes it the independent oracle of the compiled path.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition, underline


@dataclass(frozen=True)
class Text:
    """A query as it was written, and its syntax tree as parsed, nothing qualified or moved."""

    sql: str
    tree: exp.Query

    @cached_property
    def tokens(self) -> list[Token]:
        return tokenized(self.sql)

    @property
    def normal(self) -> str:
        """The same for queries that differ in comments, spaces and the case of keywords only."""
        return _normal(self.sql)

    def shown(self, start: int, end: int) -> str:
        """The line that holds ``sql[start : end + 1]``, for the part `where` of an error."""
        return underline(self.sql, start, end)

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, as it names them: distinct, in order of appearance."""
        return tuple(dict.fromkeys(self.mentions))

    @property
    def mentions(self) -> tuple[str, ...]:
        """The same, each as often as the query names it."""
        tables = sorted(self.tables(), key=lambda table: _span(table)[0])
        return tuple(table_name(table) for table in tables)

    def tables(self) -> list[exp.Table]:
        """Every mention of a table that is not the name of a common table expression."""
        found: dict[int, exp.Table] = {}
        for scope in traverse_scope(self.tree):
            for source in scope.tables:
                if isinstance(source.this, exp.Identifier) and not _is_cte(source, scope):
                    found[id(source)] = source
        return list(found.values())

    @property
    def aliases(self) -> frozenset[str]:
        """The names under which columns can be asked of tables and subqueries, in lower case."""
        relations = self.tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)
        return frozenset(each.alias_or_name.lower() for each in relations)

    def over(self, relation: Callable[[str], str]) -> str:
        """The text with each table name replaced by a relation; everything else stays as it is.

        Args:
            relation: From a table's name to SQL that can stand in FROM without an alias.
        """
        return self._replaced(self.sql, relation)

    def _replaced(self, sql: str, relation: Callable[[str], str]) -> str:
        for table in sorted(self.tables(), key=lambda each: -_span(each)[0]):
            start, stop = _span(table)
            # Columns may say `orders.id`, so a table without an alias goes on under its name.
            alias = "" if table.alias else f" AS `{table.name}`"
            sql = f"{sql[:start]}{relation(table_name(table))}{alias}{sql[stop + 1 :]}"
        return sql

    def with_columns(self, hidden: dict[str, str]) -> Text:
        """The text with more columns at the end of its outermost SELECT list."""
        if not hidden:
            return self
        at = _outermost(self, TokenType.FROM).start
        more = ", ".join(f"{expression} AS `{name}`" for name, expression in hidden.items())
        # The line break ends a comment that the list may end with.
        return read(f"{self.sql[:at].rstrip()}\n, {more} {self.sql[at:]}")

    def counted(self, name: str) -> Text:
        """The rows of an outermost DISTINCT or UNION, with the number of copies it merged."""
        if isinstance(self.tree, exp.Union):
            token = _outermost(self, TokenType.UNION, last=True)
            end = token.end + 1
            following = next(each for each in self.tokens if each.start >= end)
            if following.token_type is TokenType.DISTINCT:
                end = following.end + 1
            all_copies = f"{self.sql[: token.start]}UNION ALL{self.sql[end:]}"
        else:
            token = _outermost(self, TokenType.DISTINCT)
            all_copies = self.sql[: token.start] + self.sql[token.end + 1 :]
        # The line break ends a comment that the user's text may end with.
        return read(f"SELECT *, COUNT(*) AS `{name}` FROM ({all_copies}\n) GROUP BY ALL")


def read(sql: str) -> Text:
    """Parse one query.

    Raises:
        InvalidDefinition: The text is not one query in Spark SQL.
    """
    sql = sql.strip().rstrip(";").rstrip()
    try:
        statements = [each for each in sqlglot.parse(sql, dialect=DIALECT) if each is not None]
    except ParseError as error:
        raise _broken(sql, error) from None
    except TokenError as error:
        raise _cut_short(sql, error) from None
    except Exception as error:
        # The parser stumbles over some calls with a wrong number of arguments, such as map(1).
        raise InvalidDefinition(
            "the query is not valid SQL",
            where=underline(sql, 0, len(sql)),
            why=f"it cannot be parsed: {error}",
            fix="look for a function with too few arguments",
        ) from error
    if len(statements) != 1:
        raise InvalidDefinition(
            f"the text holds {len(statements)} statements",
            where=_second_statement(sql),
            why="a stream table holds the result of one query",
            fix="write exactly one SELECT",
        )
    [tree] = statements
    if not isinstance(tree, exp.Query):
        word = sql.split()[0]
        raise InvalidDefinition(
            f"{word.upper()} does not begin a query",
            where=underline(sql, 0, len(word) - 1),
            why="a stream table holds the result of one query",
            fix="write a SELECT; its result is what the table holds",
        )
    return Text(sql, tree)


@lru_cache(maxsize=1024)
def _normal(sql: str) -> str:
    return "\x00".join(f"{each.token_type.name} {_word(each)}" for each in tokenized(sql))


def _word(token: Token) -> str:
    kind = token.token_type
    as_written = kind in (TokenType.VAR, TokenType.IDENTIFIER) or "STRING" in kind.name
    return token.text if as_written else token.text.upper()


def tokenized(sql: str) -> list[Token]:
    return sqlglot.tokenize(sql, dialect=DIALECT)


def sources_of(query: str) -> tuple[str, ...]:
    """The tables that a query reads, without knowing anything about them.

    >>> sources_of("WITH o AS (SELECT * FROM sales.orders) SELECT * FROM o JOIN users USING (id)")
    ('sales.orders', 'users')

    Raises:
        InvalidDefinition: The text is not one query.
    """
    return read(query).sources


def table_name(table: exp.Table) -> str:
    """The name of a table as a query says it, a path in backticks where it is one."""
    names = [part.name for part in table.parts]
    if len(names) == 2 and names[0].lower() == "delta":
        return f"delta.`{names[1]}`"
    return ".".join(names)


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The first and last character of what is known of the node's place in the text."""
    marked = [each.meta for each in node.walk() if "start" in each.meta]
    if not marked:
        return None
    return min(meta["start"] for meta in marked), max(meta["end"] for meta in marked)


def place(node: exp.Expr, text: Text) -> str:
    """The node's line in the text, underlined; or that of the nearest node that has a place."""
    here: exp.Expr | None = node
    while here is not None:
        found = span(here)
        if found:
            return text.shown(*found)
        here = here.parent
    return text.shown(0, len(text.sql) - 1)


def place_of_word(word: str, text: Text) -> str:
    """The first line that holds the word, underlined there; empty where there is none."""
    for token in text.tokens:
        if token.text.lower() == word.lower():
            return text.shown(token.start, token.end)
    return ""


def _span(table: exp.Table) -> tuple[int, int]:
    parts = [part.meta for part in table.parts]
    return parts[0]["start"], parts[-1]["end"]


def _is_cte(table: exp.Table, scope: object) -> bool:
    return not table.db and table.name in getattr(scope, "cte_sources", {})


def _broken(sql: str, error: ParseError) -> InvalidDefinition:
    details = error.errors[0] if error.errors else {}
    offset = _offset(sql, details.get("line", 1), details.get("col", 1))
    length = len(details.get("highlight") or " ")
    start = max(0, offset - length)
    return InvalidDefinition(
        "the query is not valid SQL",
        where=underline(sql, start, start + length - 1),
        why=str(details.get("description") or error).strip().rstrip("."),
        fix="correct the query there, or just before it",
    )


def _second_statement(sql: str) -> str:
    tokens = sqlglot.tokenize(sql, dialect=DIALECT)
    ends = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    if not ends:
        return ""
    following = tokens[ends[0] + 1]
    return underline(sql, following.start, following.end)


def _cut_short(sql: str, error: TokenError) -> InvalidDefinition:
    """A quote or a comment that does not end; the tokenizer names the line where it gave up."""
    found = re.search(r"from (\d+):(\d+)", str(error))
    start = _offset(sql, int(found[1]), int(found[2])) - 1 if found else len(sql) - 1
    return InvalidDefinition(
        "the query is not valid SQL",
        where=underline(sql, max(0, min(start, len(sql) - 1)), len(sql)),
        why=str(error).split(" from ")[0],
        fix="end what begins here",
    )


def _offset(sql: str, line: int, col: int) -> int:
    lines = sql.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + col


def _outermost(text: Text, kind: TokenType, *, last: bool = False) -> Token:
    """The first (or last) token of a kind that stands in no parentheses."""
    depth, found = 0, []
    comparing = _comparing(text.tokens)
    for position, token in enumerate(text.tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is kind and position not in comparing:
            found.append(token)
    return found[-1 if last else 0]


def _comparing(tokens: list[Token]) -> set[int]:
    """Where `IS [NOT] DISTINCT FROM` stands: neither the DISTINCT nor the FROM of a SELECT."""
    words = [token.text.upper() for token in tokens]
    found: set[int] = set()
    for position, word in enumerate(words):
        start = position + 2 if words[position + 1 : position + 2] == ["NOT"] else position + 1
        if word == "IS" and words[start : start + 2] == ["DISTINCT", "FROM"]:
            found |= {start, start + 1}
    return found
