"""The user's own text: which tables it names, where, and the same text over other tables.

sqlglot reads SQL well but does not give Spark's SQL back unchanged: printed again, a query can have
another meaning. So a full refresh, and with it every check of equality, runs the text as it was
written, with nothing exchanged but the table names, at the positions where the parser found them.
That makes it the independent oracle of the compiled path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.edits import Edit, Edited, Origin, Retold, edited
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.compiler.text.syntax import parsed, require_query, tokens_of
from dagster_streamtables.compiler.text.table_mentions import (
    Definition,
    Mention,
    joined,
    mentions_in,
)
from dagster_streamtables.errors import InvalidDefinition, Place, underline


@dataclass(frozen=True)
class Text:
    """A query as it was written."""

    sql: str
    dialect: str = DIALECT
    origin: Origin | None = field(default=None, compare=False)
    """What it was made of; None for a text as its author wrote it."""

    @cached_property
    def tokens(self) -> list[Token]:
        return tokens_of(self.sql, self.dialect)

    @cached_property
    def tree(self) -> exp.Query:
        """The syntax tree as parsed, nothing qualified or moved.

        Raises:
            InvalidDefinition: The text is not one query, as far as sqlglot knows the dialect.
        """
        return parsed(self.sql, self.dialect)

    @cached_property
    def names(self) -> tuple[list[Mention], list[Definition]]:
        """What the query names in FROM, and what it defines in WITH; of a query in Spark SQL."""
        return mentions_in(self.sql, self.tokens)

    @property
    def named(self) -> list[Mention]:
        """The tables that the query names, in their order."""
        return [each for each in self.names[0] if each.definition is None]

    @property
    def normal(self) -> str:
        """The same for queries that differ in comments, spaces and the case of keywords only."""
        return _normal(self.sql)

    def shown(self, start: int = 0, end: int | None = None) -> Place | str:
        """Where ``sql[start : end + 1]`` stands, for the part `where` of an error.

        It is the author's own text that is shown. Empty where nothing in it is known to have become
        these words.
        """
        end = len(self.sql) - 1 if end is None else end
        if self.origin is None:
            return underline(self.sql, start, end)
        return self.origin.shown(start, end, self)

    def with_edits(self, edits: Iterable[Edit]) -> Text:
        """The text with words exchanged; the same where there are none.

        Raises:
            InvalidDefinition: As `as_written`.
        """
        edits = tuple(sorted(edits, key=lambda each: each[:2]))
        if not edits:
            return self
        return replace(as_written(edited(self.sql, edits)), origin=Edited(self, edits))

    def retold(self, sql: str) -> Text:
        """Another text that says the same.

        Raises:
            InvalidDefinition: As `as_written`.
        """
        return self if sql == self.sql else replace(as_written(sql), origin=Retold(self))

    @property
    def definitions(self) -> list[Definition]:
        """What the query defines in WITH."""
        return self.names[1]

    @cached_property
    def confirmed(self) -> bool:
        """Whether the parser finds the same tables as the tokens tell of."""
        try:
            found = Counter(map(table_name, self.tables()))
        except (InvalidDefinition, SqlglotError):
            return False
        return found == Counter(self.mentions)

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, as it names them: distinct, in order of appearance."""
        return tuple(dict.fromkeys(self.mentions))

    @property
    def mentions(self) -> tuple[str, ...]:
        """The same, each as often as the query names it."""
        return tuple(each.name for each in self.named)

    def tables(self) -> list[exp.Table]:
        """Every mention of a table that is not the name of a common table expression."""
        return tables_in(self.tree)

    @property
    def aliases(self) -> frozenset[str]:
        """The names under which columns can be asked of tables and subqueries, in lower case."""
        relations = self.tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)
        return frozenset(each.alias_or_name.lower() for each in relations)

    def over(self, relation: Callable[[str], str], *, more: Iterable[Edit] = ()) -> str:
        """The text with each table name replaced by a relation; everything else stays as it is.

        Args:
            relation: From a table's name to SQL that can stand in FROM without an alias.
            more: What else is to be written otherwise, by its place in this text.
        """
        edits = list(more)
        for table in self.named:
            edits += exchanged(table, relation(table.name))
        return edited(self.sql, edits)

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


def read(sql: str, dialect: str = DIALECT) -> Text:
    """A query, parsed.

    Raises:
        InvalidDefinition: The text is not one query, as far as sqlglot knows the dialect.
    """
    text = Text(_stripped(sql), dialect)
    _ = text.tree
    return text


def as_written(sql: str) -> Text:
    """A query that Spark will parse; nothing here has to.

    Raises:
        InvalidDefinition: The text is not one query, as far as its first word tells.
    """
    text = Text(_stripped(sql))
    require_query(text.sql, text.tokens)
    return text


def _stripped(sql: str) -> str:
    # Not at the beginning: the lines of a text are those of its author's file.
    return sql.rstrip().rstrip(";").rstrip()


def exchanged(mention: Mention, relation: str) -> Iterator[Edit]:
    """Something else in the place of a name in FROM."""
    yield mention.start, mention.stop, relation
    if mention.alias_at is not None:
        # Columns may say `orders.id`, so what has no alias goes on under its name.
        name = exp.to_identifier(mention.last, quoted=True).sql(DIALECT)
        yield mention.alias_at, mention.alias_at, f" AS {name}"


@lru_cache(maxsize=1024)
def _normal(sql: str) -> str:
    words = tokens_of(sql, DIALECT)
    return "\x00".join(f"{each.token_type.name} {_word(each)}" for each in words)


def _word(token: Token) -> str:
    kind = token.token_type
    as_written = kind in (TokenType.VAR, TokenType.IDENTIFIER) or "STRING" in kind.name
    return token.text if as_written else token.text.upper()


def sources_of(query: str) -> tuple[str, ...]:
    """The tables that a query reads, without knowing anything about them.

    >>> sources_of("WITH o AS (SELECT * FROM sales.orders) SELECT * FROM o JOIN users USING (id)")
    ('sales.orders', 'users')

    Raises:
        InvalidDefinition: The text is not one query.
    """
    return as_written(query).sources


def tables_in(tree: exp.Query) -> list[exp.Table]:
    """Every mention of a table in a tree that is not the name of a common table expression."""
    found: dict[int, exp.Table] = {}
    for scope in traverse_scope(tree):
        for source in scope.tables:
            if isinstance(source.this, exp.Identifier) and not _is_cte(source, scope):
                found[id(source)] = source
    return list(found.values())


def table_name(table: exp.Table) -> str:
    """The name of a table as a query says it, a path in backticks where it is one."""
    return joined([part.name for part in table.parts])


def _is_cte(table: exp.Table, scope: object) -> bool:
    return not table.db and table.name in getattr(scope, "cte_sources", {})


def deeper(token: Token) -> int:
    """By how much what follows stands deeper in parentheses."""
    return (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)


def _outermost(text: Text, kind: TokenType, *, last: bool = False) -> Token:
    """The first (or last) token of a kind that stands in no parentheses."""
    depth, found = 0, []
    comparing = _comparing(text.tokens)
    for position, token in enumerate(text.tokens):
        depth += deeper(token)
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
