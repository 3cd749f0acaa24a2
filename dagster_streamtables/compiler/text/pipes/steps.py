"""Pipe syntax → ordinary SQL: each step becomes a query over the one before it.

    FROM t |> WHERE a                       SELECT * FROM t WHERE a
           |> AGGREGATE SUM(b) AS s         SELECT k, SUM(b) AS s FROM t GROUP BY k
              GROUP BY k
           |> EXTEND e AS x                 SELECT *, e AS x FROM (…) AS t
           |> DROP x                        SELECT * EXCEPT (x) FROM (…) AS t
           |> SET b = e                     SELECT a, e AS b FROM (…) AS t, see `columns`
           |> JOIN u ON …                   … FROM (…) AS t JOIN u ON …
           |> ORDER BY a |> LIMIT 3         SELECT * FROM (…) AS t ORDER BY a LIMIT 3

Later steps see the name of the table that the query began with, as in Spark, if that was only one.
If they are several, what stands before SELECT or AGGREGATE stays in one SELECT as far as it can, so
that all names stay visible, and what these choose keeps its name, see `names`. Where the rows
of several tables become those of a subquery, each table that a later step names is a struct there:

    FROM a JOIN b ON … |> LIMIT 3           SELECT b.x FROM (SELECT *, STRUCT(b.*) AS b
           |> SELECT b.x                        FROM a JOIN b ON … LIMIT 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.text.pipes.columns import ColumnsOf, PipeColumns, require_key
from dagster_streamtables.compiler.text.pipes.names import Stars
from dagster_streamtables.compiler.text.pipes.query import PipeQuery
from dagster_streamtables.compiler.text.pipes.words import is_pipe
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.token_ranges import JOINS
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery

_SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"}
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


class _Writer(PipeColumns):
    """Writes queries of a text again, each as the words between two of its tokens."""

    def query(self, start: int, stop: int) -> str:
        """The query of a range of tokens; what has no pipe stays as it is."""
        begin = self._ranges.after_with(start, stop)
        pipes = [i for i in self._ranges.outer(begin, stop) if is_pipe(self._tokens[i])]
        if not pipes:
            return self._copied(start, stop)
        found = self._first(begin, pipes[0], stop)
        for at, end in zip(pipes, [*pipes[1:], stop], strict=True):
            found = self._step(replace(found, at=at), at + 1, end, stop)
        return f"{self._copied(start, begin)} {found.select()}".strip()

    def _first(self, start: int, stop: int, last: int) -> PipeQuery:
        words = [self._words[i] for i in self._ranges.outer(start, stop)]
        if self._words[start] != "FROM" or {"SELECT", "WHERE", *_SETS} & set(words[1:]):
            return PipeQuery(f"(\n{self._copied(start, stop)}\n)")
        several = bool(_SEVERAL & set(words))
        alias = "" if several else self._alias(start + 1, stop)
        tables = self._names.tables(start + 1, stop, last)
        return PipeQuery(self._copied(start + 1, stop), alias, several=several, tables=tables)

    def _step(self, query: PipeQuery, start: int, stop: int, last: int) -> PipeQuery:
        word = self._words[start] if start < stop else ""
        if word in _SETS:
            operand = self._after_set(start)
            words = self._copied(start, operand)
            below = f"{query.closed.select()}\n{words} {self._copied(operand, stop)}"
            return self._united(query, below, start)
        if word in JOINS:
            return self._joined(query, self._names.tables(start, stop, last), start, stop)
        match word:
            case "WHERE":
                below, [asked] = self._settled(query.unordered, (start + 1, stop))
                loose = below.loose or self._names.is_loose(start + 1, stop)
                return replace(below, where=(*below.where, asked), loose=loose)
            case "SELECT":
                return self._select(query, start + 1, stop)
            case "EXTEND":
                return self._extended(query.unordered, start + 1, stop)
            case "DROP":
                query = query.closed if query.made else query
                left_out = ", ".join([self._copied(start + 1, stop), *query.packed])
                return self._over(query, f"* EXCEPT ({left_out})", stop)
            case "SET":
                for item in self._ranges.items(start + 1, stop):
                    query = self._assigned(query, *item)
                return query
            case "AS":
                tables = self._names.tables(start + 1, stop, last)
                named = replace(query, alias=self._copied(start + 1, stop), kept=(), tables=tables)
                return named.below(query.select(), ordered=query.ordered or bool(query.order))
            case "AGGREGATE":
                return self._aggregate(query.unordered, start + 1, stop)
            case "PIVOT" | "UNPIVOT" | "TABLESAMPLE":
                below = query.below(query.select())
                return replace(below, from_=f"{below.from_} {self._copied(start, stop)}").closed
            case "ORDER":
                below = query if not (query.order or query.offset) else query.closed
                below, [order] = self._settled(below, (start, stop))
                return replace(below, order=order)
            case "SORT" | "CLUSTER" | "DISTRIBUTE":  # each within the partitions that Spark makes
                return replace(query.unordered, ordered=True)
            case "LIMIT" | "OFFSET":
                return self._first_rows(query, word, start, stop)
        raise UnsupportedQuery(
            f"the step {word} of a pipe is not supported yet",
            where=self._shown(start), why=_WHY, fix=f"write it as a SELECT, {_OR_FULL}",
        )  # fmt: skip

    def _after_set(self, at: int) -> int:
        """The token after UNION, and ALL or DISTINCT."""
        return at + 1 + (self._words[at + 1 : at + 2] in (["ALL"], ["DISTINCT"]))

    def _joined(
        self, query: PipeQuery, tables: tuple[tuple[str, int], ...], start: int, stop: int
    ) -> PipeQuery:
        words = {self._words[i] for i in self._ranges.outer(start, stop)}
        # A condition may come after these joins, if the new table has none of the names in it.
        stays = query.several and not (words & {"RIGHT", "FULL"} or query.loose or query.made)
        below = query if stays and not (query.order or query.offset) else query.closed
        below, [told] = self._settled(below, (start, stop))
        from_ = f"{below.from_}\n{told}"
        return PipeQuery(
            from_, where=below.where, several=True, kept=below.kept,
            tables=(*below.tables, *tables), packed=below.packed,
        )  # fmt: skip

    def _extended(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        """Columns of several tables stay open, whose names later steps may say."""
        open_ = query if query.several else None
        for each in self._ranges.items(start, stop):
            open_ = self._with_value(open_, *each) if open_ is not None else None
        if open_ is not None:
            return open_
        below, [items] = self._settled(query.closed if query.made else query, (start, stop))
        return self._over(below, f"{below.stars}, {items}", stop)

    def _with_value(self, query: PipeQuery, start: int, stop: int) -> PipeQuery | None:
        found = self._names.value(start, stop)
        told = found and self._names.retold(start, found[1], query.names, Stars())
        if found is None or told is None or found[0] in dict(query.made):
            return None
        return replace(query, made=(*query.made, (found[0], told)))

    def _select(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        end = next((i for i in self._ranges.outer(start, stop) if self._ends_list(i, stop)), stop)
        begin = start + (self._words[start] in ("DISTINCT", "ALL"))
        below, [items, clauses] = self._settled(
            query.unordered, (end, stop), outputs=[(begin, end)]
        )
        sql = below.select(f"{self._copied(start, begin)} {items}".strip())
        below = self._choosing(below, self._ranges.items(begin, end))
        return below.below(f"{sql}\n{clauses}", ordered=below.ordered)

    def _choosing(self, query: PipeQuery, items: Sequence[tuple[int, int]]) -> PipeQuery:
        return query if query.alias else replace(query, kept=self._names.chosen(items))

    def _ends_list(self, at: int, stop: int) -> bool:
        """Whether the clause GROUP BY or WINDOW begins there."""
        if self._words[at] == "WINDOW":
            return at + 2 < stop and self._words[at + 2] == "AS"
        return self._tokens[at].token_type is TokenType.GROUP_BY

    def _aggregate(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        group = next((i for i in self._ranges.outer(start, stop) if self._groups(i)), stop)
        keys = self._ranges.items(self._after_group(group), stop) if group < stop else []
        numbers = {
            self._words[i]: i for i, end in keys if end - i == 1 and self._words[i].isdigit()
        }
        query, found = self._keyed(query, numbers, start) if numbers else (query, {})
        values = [self._key(*each) for each in keys]
        query, told = self._settled(query, *values, outputs=[(start, group), *keys])
        calls, named, plain = told[0], told[1 : len(keys) + 1], told[len(keys) + 1 :]
        items = [found[each][0] if each in found else each for each in named]
        groups = [found[each][1] if each in found else each for each in plain]
        sql = query.select(", ".join(filter(None, [*items, calls])), ", ".join(groups))
        return self._choosing(query, keys).below(sql)

    def _groups(self, at: int) -> bool:
        """Whether GROUP BY begins there, and not the order of a LISTAGG."""
        return self._words[at] == "GROUP" and self._words[at - 1] != "WITHIN"

    def _after_group(self, group: int) -> int:
        """The token after GROUP BY, which is one or two."""
        return group + 1 + (self._words[group + 1 : group + 2] == ["BY"])

    def _key(self, start: int, stop: int) -> tuple[int, int]:
        """A key without its alias."""
        require_key([self._words[i] for i in self._ranges.outer(start, stop)], self._shown(start))
        named = next((i for i in self._ranges.outer(start, stop) if self._words[i] == "AS"), stop)
        return start, named

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
        bare = replace(below, order="", offset="")
        return bare.over(bare.stars, ordered=bool(query.order), ends=ends)
