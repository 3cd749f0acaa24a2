"""The user's own text: which tables it names, where, and the same text over other tables.

sqlglot parses SQL well but does not print Spark's SQL back unchanged: the printed query can mean
something else. So a full refresh, and with it every equality check, runs the text as written and
replaces only the table names, at the positions where the parser found them. That makes it an
independent oracle for the compiled path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import count

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, quote
from dagster_streamtables.compiler.text.syntax import parse_query, require_query, tokens_of
from dagster_streamtables.compiler.text.table_mentions import (
    Definition,
    Mention,
    aliases_in,
    duplicate_definitions,
    mentions_in,
    table_name,
    tables_in,
)
from dagster_streamtables.compiler.text.token_edits import (
    Edit,
    apply_edits,
    end_of_list,
    keyword_of,
    outermost,
)
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, underline


@dataclass(frozen=True)
class Text:
    """A query as written."""

    sql: str
    dialect: str = DIALECT
    origin: Text | None = field(default=None, compare=False)
    """The text that it was made from; None for the author's own."""
    edits: tuple[Edit, ...] = field(default=(), compare=False)
    """The replaced spans of the origin, in order; empty if it was printed or translated."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """How its results look different than in the dialect of its author."""

    @cached_property
    def tokens(self) -> list[Token]:
        return tokens_of(self.sql, self.dialect)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The texts of its tokens, in lower case."""
        return frozenset(each.text.lower() for each in self.tokens)

    @cached_property
    def tree(self) -> exp.Query:
        """The syntax tree as parsed, before any name is resolved."""
        return parse_query(self.sql, self.dialect)

    @cached_property
    def names(self) -> tuple[list[Mention], list[Definition]]:
        """The names in FROM, and the definitions in WITH. The query must be Spark SQL."""
        return mentions_in(self.sql, self.tokens)

    @cached_property
    def has_pipes(self) -> bool:
        """Whether the query is written as steps, each after a bar and a `>`."""
        return any(each.token_type is TokenType.PIPE_GT for each in self.tokens)

    @cached_property
    def takes_all_columns(self) -> bool:
        """Whether it may have all columns of a table, by a star, which most steps of a pipe have;
        also if it cannot be parsed."""
        try:
            stars = self.tree.find_all(exp.Star)
        except InvalidDefinition:
            return True
        return any(not isinstance(star.parent, exp.Count) for star in stars)

    @property
    def source_mentions(self) -> list[Mention]:
        """The mentions of tables, in order of appearance."""
        return [each for each in self.names[0] if each.definition is None]

    @property
    def normal(self) -> str:
        """A normal form, equal for texts that a formatter makes of each other.

        It ignores comments, whitespace, the case of keywords and functions, AS, the INNER and OUTER
        of a join, and quotes around names that need none. The case of names counts: columns of the
        result are called so.
        """
        return _normal(self.sql, self.dialect)

    @property
    def former_normal(self) -> str:
        """The normal form whose digest is in the states of tables that an older version wrote."""
        words = list[str]()
        for token in tokens_of(self.sql, DIALECT):
            kind = token.token_type
            as_written = kind in (TokenType.VAR, TokenType.IDENTIFIER) or "STRING" in kind.name
            words.append(f"{kind.name} {token.text if as_written else token.text.upper()}")
        return "\x00".join(words)

    def locate(self, start: int = 0, end: int | None = None) -> QueryPosition | str:
        """The position of ``sql[start : end + 1]``, for the `where` of an error.

        Errors are found in the compiled text, in which views are inlined, and which may be
        translated. So the position refers to the author's own text; it is empty unless this has
        the words exactly once.
        """
        end = len(self.sql) - 1 if end is None else end
        if self.origin is None:
            return underline(self.sql, start, end)
        if self.edits:
            return self.origin.locate(self._before(start)[0], self._before(end)[1])
        words = [t.text.lower() for t in self.tokens if start <= t.start and t.end <= end]
        known = [token.text.lower() for token in self.origin.tokens]
        starts = range(len(known) - len(words) + 1) if words else ()
        found = [i for i in starts if known[i : i + len(words)] == words]
        if len(found) != 1:
            return ""
        first, last = (self.origin.tokens[found[0] + i] for i in (0, len(words) - 1))
        return self.origin.locate(first.start, last.end)

    def _before(self, position: int) -> tuple[int, int]:
        """The first and last original position of a character; for a new one, the replaced span."""
        moved = 0
        for start, stop, new in self.edits:
            if position < start + moved:
                break
            if position < start + moved + len(new):
                return start, max(start, stop - 1)
            moved += len(new) - (stop - start)
        return position - moved, position - moved

    def with_edits(self, edits: Iterable[Edit]) -> Text:
        """The text with spans replaced, which Spark has to parse."""
        made = self._replace_spans(edits)
        if made is self:
            return self
        require_query(made.sql, made.tokens)
        return _without_tables_as_queries(made)

    def _replace_spans(self, edits: Iterable[Edit]) -> Text:
        edits = tuple(sorted(edits, key=lambda each: each[:2]))
        if not edits:
            return self
        sql = _strip_end(apply_edits(self.sql, edits))
        return replace(self, sql=sql, origin=self, edits=edits)

    def with_sql(self, sql: str) -> Text:
        """The same query in words of Spark SQL."""
        if sql == self.sql and self.dialect == DIALECT:
            return self
        return replace(tokenize_query(sql), origin=self, edits=(), notes=self.notes)

    @property
    def definitions(self) -> list[Definition]:
        return self.names[1]

    @cached_property
    def has_consistent_tables(self) -> bool:
        """Whether the parser and the token scan find the same tables."""
        try:
            found = Counter(map(table_name, self.tables()))
        except (InvalidDefinition, SqlglotError):
            return False
        return found == Counter(self.mentions)

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, as it spells them: distinct, in order of appearance."""
        return tuple(dict.fromkeys(self.mentions))

    @property
    def mentions(self) -> tuple[str, ...]:
        """Like `sources`, but with repetitions."""
        return tuple(each.name for each in self.source_mentions)

    def tables(self) -> list[exp.Table]:
        """Every mention of a table, common table expressions excluded."""
        return tables_in(self.tree)

    @cached_property
    def aliases(self) -> frozenset[str]:
        """The names that can qualify a column, in lower case."""
        return aliases_in(self.tree)

    def over(self, relation: Callable[[str], str], *, more: Iterable[Edit] = ()) -> Text:
        """The text with each table name replaced by SQL that is valid in FROM without an alias, and
        with further edits."""
        edits = list(more)
        for table in self.source_mentions:
            edits += replace_mention(table, relation(table.name))
        return self._replace_spans(edits)

    def with_columns(self, hidden: dict[str, str]) -> Text:
        """The text with more columns at the end of its outermost SELECT list."""
        if not hidden:
            return self
        at = end_of_list(self.sql, self.tokens)
        more = ", ".join(f"{expression} AS `{name}`" for name, expression in hidden.items())
        # Only a step AGGREGATE can have no list. The line break ends a trailing comment of one.
        before = [keyword_of(each) for each in self.tokens if each.end < at]
        comma = "" if before[-2:] == ["|>", "AGGREGATE"] else ", "
        return self.with_edits([(len(self.sql[:at].rstrip()), at, f"\n{comma}{more} ")])

    def with_copy_counts(self, name: str) -> Text:
        """The rows of the outermost DISTINCT or UNION, with the number of copies it merged."""
        if isinstance(self.tree, exp.Union):
            at = outermost(self.tokens, TokenType.UNION)[-1]
            distinct = self.tokens[at + 1].token_type is TokenType.DISTINCT
            end = self.tokens[at + distinct].end + 1
            all_copies = (self.tokens[at].start, end, "UNION ALL")
        else:
            token = self.tokens[outermost(self.tokens, TokenType.DISTINCT)[-self.has_pipes]]
            all_copies = (token.start, token.end + 1, "")
        before = f"SELECT *, COUNT(*) AS `{name}` FROM ("
        # The line break ends a trailing comment of the user's text.
        return self.with_edits([*_around(self.sql, before, "\n) GROUP BY ALL"), all_copies])

    def as_subquery(self) -> Text:
        """All rows of the text, for Spark, which accepts no command in a subquery."""
        # The line breaks end comments of the text.
        return self._replace_spans(_around(self.sql, "SELECT * FROM (\n", "\n)"))


def read(sql: str, dialect: str = DIALECT) -> Text:
    """A query that sqlglot can parse.

    Raises:
        InvalidDefinition: sqlglot cannot parse the text as one query of the dialect.
    """
    text = Text(_strip_end(sql), dialect)
    text = _without_tables_as_queries(text) if dialect == DIALECT else text
    _ = text.tree
    return text


def tokenize_query(sql: str) -> Text:
    """A query that only Spark has to parse.

    Raises:
        InvalidDefinition: The text has several statements, or does not begin like a query.
    """
    text = Text(_strip_end(sql))
    require_query(text.sql, text.tokens)
    return _without_tables_as_queries(text)


def _without_tables_as_queries(text: Text) -> Text:
    """The text with ``SELECT * FROM t`` for the query ``TABLE t``.

    Before a pipe it is ``FROM t``, for its steps may say t.
    """
    edits = list[Edit]()
    for each in text.names[0] if "table" in text.sql.lower() else []:
        if (at := each.table_at) is not None:
            begins = text.sql[:at].rstrip()[-1:] in ("", "(")
            from_ = "FROM" if begins and each.before == "|>" else "SELECT * FROM"
            edits.append((at, at + 5, from_))
    return text.with_edits(edits)


def _strip_end(sql: str) -> str:
    # Only at the end, so that line numbers match the author's file.
    return sql.rstrip().rstrip(";").rstrip()


def _around(sql: str, before: str, after: str) -> tuple[Edit, Edit]:
    return (0, 0, before), (len(sql), len(sql), after)


def replace_mention(mention: Mention, relation: str) -> Iterator[Edit]:
    """Edits that replace a name in FROM with a relation."""
    yield mention.start, mention.stop, relation
    if mention.alias_at is not None:
        # Columns may be qualified by the name (`orders.id`), so it becomes the alias.
        yield mention.alias_at, mention.alias_at, f" AS {quote(mention.last)}"


@lru_cache(maxsize=10_000)
def _normal(sql: str, dialect: str) -> str:
    text = Text(sql, dialect)
    try:
        found = text.tree.find_all(exp.Identifier)
        names = frozenset(each.name.lower() for each in found if not each.args.get("quoted"))
    except InvalidDefinition:  # only Spark has to understand a query that runs as written
        names = frozenset(each.text.lower() for each in text.tokens)
    after = [*text.tokens[1:], None]
    words = (_word(text, *each, names) for each in zip(text.tokens, after, strict=True))
    return "\x00".join(word for word in words if word)


def _word(text: Text, token: Token, after: Token | None, names: Collection[str]) -> str:
    """A word of the normal form; empty for one that says nothing."""
    kind, word = token.token_type, token.text
    if kind is TokenType.IDENTIFIER:
        return word if _needs_no_quotes(word, text.dialect) else f"`{word}`"
    if "STRING" in kind.name:
        written = text.sql[token.start : token.end + 1]
        return f"'{word}'" if written[1:-1] == word else f"{kind.name} {written}"
    before_join = after is not None and after.token_type is TokenType.JOIN
    if kind in (TokenType.ALIAS, TokenType.SEMICOLON) or (before_join and kind in _UNNEEDED):
        return ""
    if not any(map(str.isalnum, word)):
        return kind.name  # `!=` and `<>` are one operator
    return word if word.lower() in names else word.upper()


_UNNEEDED = (TokenType.INNER, TokenType.OUTER)
"""Before JOIN."""


@lru_cache(maxsize=4096)
def _needs_no_quotes(name: str, dialect: str) -> bool:
    """Whether a name without quotes can only be read as this name: `current_date` is a function."""
    if not _PLAIN.fullmatch(name) or name.lower() in _FUNCTIONS_WITHOUT_PARENTHESES:
        return False
    return [each.token_type for each in tokens_of(name, dialect)] == [TokenType.VAR]


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTIONS_WITHOUT_PARENTHESES = {
    *("current_catalog", "current_database", "current_date", "current_role", "current_schema"),
    *("current_time", "current_timestamp", "current_user", "localtime", "localtimestamp"),
    *("session_user", "system_user", "sysdate", "today", "user"),
}


def without_parentheses(text: Text) -> Text:
    """The query without parentheses around all of it, for columns are added to its first SELECT."""
    while isinstance(text.tree, exp.Subquery) and not any(
        value for name, value in text.tree.args.items() if name != "this"
    ):
        opening, closing = text.tokens[0], text.tokens[-1]
        text = text.with_edits(
            [(opening.start, opening.end + 1, ""), (closing.start, closing.end + 1, "")]
        )
    return text


def without_repetitions(text: Text) -> Text:
    """The query in which no two definitions are called alike, whatever their case.

        WITH a AS (q) SELECT … FROM (WITH a AS (r) SELECT … FROM a) JOIN a …
        → WITH a AS (q) SELECT … FROM (WITH a_2 AS (r) SELECT … FROM a_2 AS a) JOIN a …

    A WITH inside a query hides the definitions around it, and the other steps know a definition by
    its name alone. Those of one WITH that are called alike stay so: Spark refuses them.
    """
    names = [each.name.lower() for each in text.definitions]
    repeated = [each for i, each in enumerate(text.definitions) if names[i] in names[:i]]
    if not repeated or any(duplicate_definitions(text.tree)):
        return text
    taken, new = set(text.vocabulary), dict[Definition, str]()
    for each in repeated:
        free = next(n for i in count(2) if (n := f"{each.name}_{i}").lower() not in taken)
        taken.add(free.lower())
        new[each] = quote(free)
    return text.with_edits(rename_definitions(text, new))


def rename_definitions(text: Text, names: Mapping[Definition, str]) -> Iterator[Edit]:
    """Edits that give definitions of WITH other names, also where they are mentioned."""
    for definition, name in names.items():
        yield definition.start, definition.stop, name
    for mention in text.names[0]:
        if mention.definition is not None and (name := names.get(mention.definition)):
            yield from replace_mention(mention, name)
