"""Steps of a pipe that need the names of the columns before them.

|> SET b = e                        SELECT a, e AS b, c FROM …, in the order that there was
|> AGGREGATE … GROUP BY 2           GROUP BY b, the second column before the step
|> UNION ALL SELECT …               t.a is the column of the result in whose place t.a was

Where two columns have one name, they are numbered: SELECT __st_1 AS id, __st_2 AS id FROM (…)
AS __st_rows(__st_1, __st_2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from dagster_streamtables.compiler.text.pipes.names import Stars, folded
from dagster_streamtables.compiler.text.pipes.query import PipeQuery
from dagster_streamtables.compiler.text.pipes.words import PipeWords
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition, Place, UnsupportedQuery

_NUMBER, _VALUE, _KEY = "__st_", "__st_value", "__st_key_"
SPARK_ONLY = "the query must be Spark SQL, in mode FULL too"
_OF_SETS = {"CUBE", "ROLLUP", "GROUPING", "ALL"}
_SEVERAL_SETS = ({"WITH", "ROLLUP"}, {"WITH", "CUBE"}, {"GROUPING", "SETS"})

ColumnsOf = Callable[[str], Sequence[str]]
"""A query without pipe syntax → the names of its columns.

Raises InvalidDefinition if they are not known.
"""


def require_key(words: Sequence[str], where: Place | str) -> None:
    """
    Args:
        words: A key of AGGREGATE in upper case, without what its parentheses hold.
        where: Its place.

    Raises:
        InvalidDefinition: Spark has no such key.
        UnsupportedQuery: It is a constant, which GROUP BY of a SELECT would take for a column.
    """
    if words[0] in _OF_SETS or any(each <= set(words) for each in _SEVERAL_SETS):
        raise InvalidDefinition(
            "Spark has no grouping sets in AGGREGATE, nor GROUP BY ALL",
            where=where, why=SPARK_ONLY,
            fix="write SELECT … GROUP BY … instead of this step and those before it",
        )  # fmt: skip
    if words[0].isdigit() and words[1:2] == ["AS"]:
        raise UnsupportedQuery(
            "a number with a name as the key of AGGREGATE", where=where,
            why="in GROUP BY of a SELECT, a number means a column",
            fix="leave it out, and add the column by EXTEND after the step",
        )  # fmt: skip


class PipeColumns(PipeWords):
    """Steps over columns that they do not name themselves."""

    def __init__(self, text: Text, columns_of: ColumnsOf) -> None:
        super().__init__(text)
        self._columns_of = columns_of

    def _settled(
        self,
        query: PipeQuery,
        *ranges: tuple[int, int],
        outputs: Sequence[tuple[int, int]] = (),
    ) -> tuple[PipeQuery, Sequence[str]]:
        """The words of lists of outputs, and of other ranges, over the query; closed, if they may
        mean other columns, or give them other names."""
        for each in (query, query.closed):
            told = self._retold(each, ranges, outputs)
            if told is not None:
                return each, told
        return query.closed, [self._copied(*each) for each in (*outputs, *ranges)]

    def _retold(
        self,
        query: PipeQuery,
        ranges: Sequence[tuple[int, int]],
        outputs: Sequence[tuple[int, int]],
    ) -> Sequence[str] | None:
        if not (query.names or query.packed):
            return [self._copied(*each) for each in (*outputs, *ranges)]
        stars = Stars(query.packed, [f"{value} AS {name}" for name, value in query.made])
        told = [
            *(self._names.outputs(*each, query.names, stars) for each in outputs),
            *(self._names.retold(*each, query.names, stars) for each in ranges),
        ]
        return None if None in told else [each or "" for each in told]

    def _over(self, query: PipeQuery, items: str, stop: int) -> PipeQuery:
        below = query.closed if query.made else query.unordered
        return replace(below, at=stop).over(items, ordered=below.ordered)

    def _assigned(self, query: PipeQuery, start: int, stop: int) -> PipeQuery:
        """One assignment of SET, to which those before it have already happened."""
        if self._words[start + 1 : start + 2] != ["="] or start + 2 >= stop:
            raise InvalidDefinition(
                "SET takes column = expression", where=self._shown(start), why=SPARK_ONLY,
                fix="name the column alone, without its table",
            )  # fmt: skip
        query, [value] = self._settled(query.closed if query.made else query, (start + 2, stop))
        column, names = self._copied(start, start + 1), self._columns(query, start)
        at = _only(names, column, self._shown(start))
        items = [quoted(name) for name in names]
        if not _repeats(names):
            items[at] = f"{value} AS {column}"
            return self._over(query, ", ".join(items), stop)
        query = self._over(query, f"{query.stars}, {value} AS {_VALUE}", stop)
        items = _numbered(names)
        items[at] = f"{_VALUE} AS {column}"
        from_ = _rows(f"SELECT * FROM {query.from_}", len(names), [_VALUE, *query.packed])
        return self._hiding(query, items, from_, query.packed)

    def _hiding(
        self, query: PipeQuery, items: Sequence[str], from_: str, packed: Sequence[str]
    ) -> PipeQuery:
        """The query over numbered columns, and others that the user does not see."""
        below = query.below(f"SELECT {', '.join([*items, *packed])} FROM {from_}")
        return replace(below, packed=tuple(packed), ordered=query.ordered)

    def _united(self, query: PipeQuery, sql: str, at: int) -> PipeQuery:
        """A set operation, in which columns have the names of their tables still."""
        tables = [*query.packed, *query.named]
        if not tables:
            return query.below(sql)
        names = self._columns(query, at)
        every = [*query.packed, *(name for name, _ in query.tables)]
        owned = _owned(names, {each: self._columns_in(query, at, each) for each in every})
        structs = [f"NAMED_STRUCT({owned[each]}) AS {each}" for each in tables if owned[each]]
        from_ = _rows(sql, len(names))
        below = query.below(f"SELECT {', '.join([*_numbered(names), *structs])} FROM {from_}")
        return replace(below, packed=tuple(each for each in tables if owned[each]))

    def _keyed(
        self, query: PipeQuery, numbers: Mapping[str, int], at: int
    ) -> tuple[PipeQuery, Mapping[str, tuple[str, str]]]:
        """The query, and for each number a column to return and a key to group by.

        Args:
            query: What stands before AGGREGATE.
            numbers: Each with its token.
            at: The token of the step.

        Raises:
            InvalidDefinition: There are not so many columns.
        """
        names = self._columns(query, at)
        for number, token in numbers.items():
            _require_column(names, int(number), self._shown(token))
        named = {number: quoted(names[int(number) - 1]) for number in numbers}
        if not _repeats(names):
            below = query.closed if query.made else query
            return below, {number: (name, name) for number, name in named.items()}
        below = query.over(query.stars)
        keys = [f"{_NUMBER}{number} AS {_KEY}{number}" for number in numbers]
        from_ = _rows(f"SELECT * FROM {below.from_}", len(names), below.packed)
        items = [*_numbered(names), *keys]
        hidden = [f"{_KEY}{number}" for number in numbers]
        below = replace(
            self._hiding(below, items, from_, below.packed), packed=(*hidden, *below.packed)
        )
        return below, {n: (f"{_KEY}{n} AS {name}", f"{_KEY}{n}") for n, name in named.items()}

    def _columns_in(self, query: PipeQuery, at: int, table: str) -> Sequence[str]:
        """The columns of a table; none, if it only chooses rows, as that of a SEMI JOIN."""
        with suppress(InvalidDefinition):
            return self._columns(query, at, f"{table}.*")
        return ()

    def _columns(self, query: PipeQuery, at: int, items: str = "") -> Sequence[str]:
        """The columns before the step of a token, or what they are of some items."""
        try:
            return self._columns_of(f"{self._defined(at)}{query.select(items)}")
        except InvalidDefinition as error:
            where = self._shown(at)
            raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from None


def _only(names: Sequence[str], column: str, where: Place | str) -> int:
    """The place of a column.

    Raises:
        InvalidDefinition: There is no such column, or there are two.
    """
    found = [at for at, name in enumerate(names) if name.lower() == folded(column)]
    if len(found) == 1:
        return found[0]
    raise InvalidDefinition(
        f"SET of {column}, which is {'two columns' if found else 'no column'}", where=where,
        why="SET changes one column that is there",
        fix=f"write EXTEND, or one of {', '.join(n for n in names if names.count(n) == 1)}",
    )  # fmt: skip


def _require_column(names: Sequence[str], number: int, where: Place | str) -> None:
    if not 0 < number <= len(names):
        raise InvalidDefinition(
            f"there is no column {number} before AGGREGATE", where=where,
            why=f"in GROUP BY of AGGREGATE, a number counts the {len(names)} columns before it",
            fix="name the column",
        )  # fmt: skip


def _repeats(names: Sequence[str]) -> bool:
    return len({name.lower() for name in names}) < len(names)


def _numbered(names: Sequence[str]) -> list[str]:
    """The columns by their numbers, with their names."""
    return [f"{_NUMBER}{number} AS {quoted(name)}" for number, name in enumerate(names, 1)]


def _rows(sql: str, count: int, more: Sequence[str] = ()) -> str:
    """The rows of a query, whose first columns are numbered."""
    numbers = (f"{_NUMBER}{number}" for number in range(1, count + 1))
    return f"(\n{sql}\n) AS __st_rows({', '.join([*numbers, *more])})"


def _owned(names: Sequence[str], tables: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """For each table the fields of a struct of its columns, by their places among others.

    Args:
        names: All columns, in the order of their tables; some may have no table, and of two that
            USING makes one it is not known whose it is.
        tables: The columns of each.
    """
    found: dict[str, list[str]] = {table: [] for table in tables}
    for name in dict.fromkeys(each.lower() for each in names):
        places = [at for at, each in enumerate(names, 1) if each.lower() == name]
        owners = [table for table, columns in tables.items()
                  if name in (each.lower() for each in columns)]  # fmt: skip
        if len(owners) == len(places):
            for table, place in zip(owners, places, strict=True):
                text = exp.Literal.string(names[place - 1]).sql(DIALECT)
                found[table].append(f"{text}, {_NUMBER}{place}")
    return {table: ", ".join(fields) for table, fields in found.items()}


def quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(DIALECT)
