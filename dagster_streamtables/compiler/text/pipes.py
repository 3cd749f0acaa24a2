"""Pipe syntax → ordinary SQL: each step becomes a query over the one before it.

    FROM t |> WHERE a                       SELECT * FROM t WHERE a
           |> AGGREGATE SUM(b) AS s         SELECT k, SUM(b) AS s FROM t GROUP BY k
              GROUP BY k
           |> EXTEND e AS x                 SELECT *, e AS x FROM (…) AS t
           |> DROP x                        SELECT * EXCEPT (x) FROM (…) AS t
           |> SET b = e                     SELECT a, e AS b FROM (…) AS t, see `pipe_columns`
           |> JOIN u ON …                   … FROM (…) AS t JOIN u ON …
           |> ORDER BY a |> LIMIT 3         SELECT * FROM (…) AS t ORDER BY a LIMIT 3

Joins and conditions right after FROM stay in one SELECT, so that all of its names stay visible.
Later steps see the name of the table that the query began with, as in Spark, if that was only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.pipe_columns import (
    SPARK_ONLY,
    ColumnsOf,
    at_number,
    require_key,
    with_value,
)
from dagster_streamtables.compiler.text.pipe_query import PipeQuery
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.token_ranges import TokenRanges
from dagster_streamtables.errors import InvalidDefinition, Place, UnsupportedQuery

_SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"}
_JOINS = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL"}
_SEVERAL = {"JOIN", ",", "LATERAL", "PIVOT", "UNPIVOT", "TABLESAMPLE"}
_WHY = "no query without pipe syntax is known that means the same"
_OR_FULL = "or choose mode FULL, which reruns the query whenever a source has changed"


def without_pipes(text: Text, columns_of: ColumnsOf) -> Text:
    """The query without pipe syntax.

    Args:
        text: The query.
        columns_of: The names of a query's columns; asked only where a step needs them.

    Raises:
        UnsupportedQuery: A step of a pipe has no translation.
        InvalidDefinition: The text is not one query, or a step is none of Spark's.
    """
    if not text.has_pipes:
        return text
    writer = _Writer(text, columns_of)
    return text.retold(writer.query(0, len(text.tokens)))


class _Asked(Exception):
    """A step asked for the columns before it."""


def counts_columns(text: Text) -> bool:
    """Whether a step depends on all columns before it, and on their order."""
    asked = list[str]()

    def columns_of(sql: str) -> Sequence[str]:
        asked.append(sql)
        raise _Asked

    with suppress(InvalidDefinition, _Asked):
        without_pipes(text, columns_of)
    return bool(asked)


def _is_pipe(token: Token) -> bool:
    return token.token_type is TokenType.PIPE_GT


class _Writer:
    """Writes queries of a text again, each as the words between two of its tokens."""

    def __init__(self, text: Text, columns_of: ColumnsOf) -> None:
        self._text = text
        self._columns_of = columns_of
        self._tokens = text.tokens
        self._words = [text.sql[t.start : t.end + 1].upper().split()[0] for t in text.tokens]
        self._ranges = TokenRanges(self._tokens, self._words)

    def query(self, start: int, stop: int) -> str:
        """The query of a range of tokens; what has no pipe stays as it is."""
        begin = self._ranges.after_with(start, stop)
        pipes = [i for i in self._ranges.outer(begin, stop) if _is_pipe(self._tokens[i])]
        if not pipes:
            return self._copied(start, stop)
        found = self._first(begin, pipes[0])
        for at, end in zip(pipes, [*pipes[1:], stop], strict=True):
            found = self._step(found, at + 1, end)
        return f"{self._copied(start, begin)} {found.select()}".strip()

    def _first(self, start: int, stop: int) -> PipeQuery:
        words = [self._words[i] for i in self._ranges.outer(start, stop)]
        if self._words[start] == "TABLE" and not set(words) & _SETS:
            return PipeQuery(self._copied(start + 1, stop), self._alias(start + 1, stop))
        if self._words[start] != "FROM" or {"SELECT", "WHERE", *_SETS} & set(words[1:]):
            return PipeQuery(f"(\n{self._operand(start, stop)}\n)")
        several = bool(_SEVERAL & set(words))
        alias = "" if several else self._alias(start + 1, stop)
        return PipeQuery(self._copied(start + 1, stop), alias)

    def _alias(self, start: int, stop: int) -> str:
        """The name by which the only table of FROM qualifies columns."""
        last = self._tokens[stop - 1]
        named = last.token_type is not TokenType.R_PAREN
        return self._text.sql[last.start : last.end + 1] if named and stop > start else ""

    def _step(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        word = self._words[start] if start < stop else ""
        if word in _SETS:
            operand = self._after_set(start)
            words = self._copied(start, operand)
            below = f"{query.closed.select()}\n{words} {self._operand(operand, stop)}"
            return query.below(below)
        if word in _JOINS:
            below = query.closed
            return PipeQuery(f"{below.from_}\n{self._copied(start, stop)}")
        match word:
            case "WHERE":
                kept = query if not (query.order or query.offset) else query.closed
                return replace(kept, where=(*kept.where, self._copied(start + 1, stop)))
            case "SELECT":
                return self._select(query, start + 1, stop)
            case "EXTEND":
                return self._over(query, f"*, {self._copied(start + 1, stop)}")
            case "DROP":
                return self._over(query, f"* EXCEPT ({self._copied(start + 1, stop)})")
            case "SET":
                for item in self._ranges.items(start + 1, stop):
                    query = self._assigned(query, *item)
                return query
            case "AS":
                named = replace(query, alias=self._copied(start + 1, stop))
                return named.below(query.select(), ordered=query.ordered or bool(query.order))
            case "AGGREGATE":
                return self._aggregate(query.closed, start + 1, stop)
            case "PIVOT" | "UNPIVOT" | "TABLESAMPLE":
                below = query.below(query.select())
                return replace(below, from_=f"{below.from_} {self._copied(start, stop)}").closed
            case "ORDER":
                below = query if not (query.order or query.offset) else query.closed
                return replace(below, order=self._copied(start, stop))
            case "LIMIT" | "OFFSET":
                return self._first_rows(query, word, start, stop)
        raise UnsupportedQuery(
            f"the step {word} of a pipe is not supported yet",
            where=self._shown(start), why=_WHY, fix=f"write it as a SELECT, {_OR_FULL}",
        )  # fmt: skip

    def _after_set(self, at: int) -> int:
        """The token after UNION, and ALL or DISTINCT."""
        return at + 1 + (self._words[at + 1 : at + 2] in (["ALL"], ["DISTINCT"]))

    def _operand(self, start: int, stop: int) -> str:
        table = self._words[start : start + 1] == ["TABLE"]
        return (
            f"SELECT * FROM {self._copied(start + 1, stop)}" if table else self._copied(start, stop)
        )

    def _over(self, query: PipeQuery, items: str) -> PipeQuery:
        below = query.closed if query.order or query.offset else query
        return below.below(below.select(items), ordered=below.ordered)

    def _select(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        window = next(
            (i for i in self._ranges.outer(start, stop) if self._defines_window(i, stop)), stop
        )
        below = query.closed if query.order or query.offset else query
        sql = below.select(self._copied(start, window))
        return below.below(f"{sql}\n{self._copied(window, stop)}", ordered=below.ordered)

    def _defines_window(self, at: int, stop: int) -> bool:
        return self._words[at] == "WINDOW" and at + 2 < stop and self._words[at + 2] == "AS"

    def _aggregate(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        group = next(
            (i for i in self._ranges.outer(start, stop) if self._words[i] == "GROUP"), stop
        )
        calls = self._copied(start, group)
        keys = self._ranges.items(self._after_group(group), stop) if group < stop else []
        named = [self._copied(*each) for each in keys]
        plain = [self._key(query, *each) for each in keys]
        named = [key if each.isdigit() else each for each, key in zip(named, plain, strict=True)]
        items = ", ".join(filter(None, [*named, calls]))
        return query.below(query.select(items, ", ".join(plain)))

    def _after_group(self, group: int) -> int:
        """The token after GROUP BY, which is one or two."""
        return group + 1 + (self._words[group + 1 : group + 2] == ["BY"])

    def _key(self, query: PipeQuery, start: int, stop: int) -> str:
        """A key without its alias."""
        words = [self._words[i] for i in self._ranges.outer(start, stop)]
        require_key(words, self._shown(start))
        if words[0].isdigit() and len(words) == 1:
            return at_number(self._names(query, start), int(words[0]), self._shown(start))
        named = next((i for i in self._ranges.outer(start, stop) if self._words[i] == "AS"), stop)
        return self._copied(start, named)

    def _assigned(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        """One assignment of SET, to which those before it have already happened."""
        if self._words[start + 1 : start + 2] != ["="] or start + 2 >= stop:
            raise InvalidDefinition(
                "SET takes column = expression", where=self._shown(start), why=SPARK_ONLY,
                fix="name the column alone, without its table",
            )  # fmt: skip
        column, value = self._copied(start, start + 1), self._copied(start + 2, stop)
        names = self._names(query, start)
        return self._over(query, with_value(names, column, value, self._shown(start)))

    def _names(self, query: PipeQuery, at: int) -> Sequence[str]:
        """The columns before the step of a token."""
        try:
            return self._columns_of(f"{self._defined(at)}{query.select()}")
        except InvalidDefinition as error:
            where = self._shown(at)
            raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from None

    def _defined(self, at: int) -> str:
        """The definitions of WITH that end before a token."""
        begins = {token.start: i for i, token in enumerate(self._tokens[:at])}
        starts = [begins[each.start] for each in self._text.definitions if each.start in begins]
        found = list[str]()
        for start in starts:
            body = next(i for i in self._ranges.outer(start, at) if self._words[i] == "AS") + 1
            end = self._ranges.closing(body, len(self._tokens)) + 1
            found += [self._copied(start, end)] if end <= at else []
        recursive = "RECURSIVE " * ("RECURSIVE" in self._words[:at])
        return f"WITH {recursive}{', '.join(found)}\n" if found else ""

    def _first_rows(self, query: PipeQuery, word: str, start: int, stop: int) -> PipeQuery:
        words = self._copied(start, stop)
        if not query.order and query.ordered:
            raise UnsupportedQuery(
                f"{word} of rows that an earlier step of a pipe has put into order",
                where=self._shown(start),
                why="after another step rows have no order, and Spark promises none",
                fix=f"write it right after ORDER BY, {_OR_FULL}",
            )  # fmt: skip
        if word == "OFFSET" and not query.offset:
            return replace(query, offset=words)
        ends = (query.order, words, query.offset) if word == "LIMIT" else (query.order, words)
        below = query if word == "LIMIT" else query.closed
        sql = "\n".join([replace(below, order="", offset="").select(), *filter(None, ends)])
        return below.below(sql, ordered=bool(query.order))

    def _shown(self, at: int) -> Place | str:
        token = self._tokens[min(at, len(self._tokens) - 1)]
        return self._text.shown(token.start, token.end)

    def _copied(self, start: int, stop: int) -> str:
        """The words of a range as written, with the queries inside it without pipes."""
        if start >= stop:
            return ""
        sql, at = "", self._tokens[start].start
        i = start
        while i < stop:
            end = (
                self._ranges.closing(i, stop)
                if self._tokens[i].token_type is TokenType.L_PAREN
                else i
            )
            if any(_is_pipe(each) for each in self._tokens[i:end]):
                sql += f"{self._text.sql[at : self._tokens[i].end + 1]}{self.query(i + 1, end)}"
                at = self._tokens[end].start
            i = end + 1
        return sql + self._text.sql[at : self._tokens[stop - 1].end + 1]
