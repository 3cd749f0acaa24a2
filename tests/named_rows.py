"""The rows of a relation by the names of its columns: what tests compare.

Two relations are equal if their columns have the same names, letter case too, and if their rows are
the same multiset by name. The order of the columns plays no part, so columns whose values stand
under each other's names are a difference, of whatever type they are.

Expected rows that a test writes out have the order of the query's own outputs. `rows_in_order`
reads the columns by these names, never in the order in which they are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

Values = tuple[Any, ...]
_FEW = 4


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class NamedRows:
    """The rows of a relation, as a multiset."""

    names: tuple[str, ...]
    """The columns in alphabetical order."""
    rows: Counter[Values]
    """Values in the order of `names`."""

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        rows: Iterable[Sequence[Any]] | Counter[Any],
        shown: Callable[[Any], Any] = _as_it_is,
    ) -> NamedRows:
        """
        Args:
            names: The columns.
            rows: Values in the order of `names`; of a `Counter`, each with its copies.
            shown: Turns a value into one that can be compared.
        """
        names = list(names)
        rows = rows.elements() if isinstance(rows, Counter) else rows
        order = sorted(range(len(names)), key=names.__getitem__)
        found = Counter(tuple(shown(row[place]) for place in order) for row in rows)
        return cls(tuple(names[place] for place in order), found)

    @classmethod
    def of_arrow(
        cls, rows: pa.Table | pa.RecordBatch, shown: Callable[[Any], Any] = _as_it_is
    ) -> NamedRows:
        return cls.of(rows.schema.names, tuples(rows), shown)

    @classmethod
    def of_spark(cls, rows: DataFrame, shown: Callable[[Any], Any] = _as_it_is) -> NamedRows:
        return cls.of(rows.columns, rows.collect(), shown)

    @classmethod
    def of_cursor(cls, cursor: Any, shown: Callable[[Any], Any] = _as_it_is) -> NamedRows:
        """The result of a database with Python's DB API."""
        names = [column[0] for column in cursor.description]
        return cls.of(names, cursor.fetchall(), shown)

    def in_order(self, names: Iterable[str]) -> Counter[Values]:
        """The rows with their values in another order."""
        names = list(names)
        assert sorted(names) == list(self.names), (names, self.names)
        places = [self.names.index(name) for name in names]
        return Counter({tuple(row[place] for place in places): n for row, n in self.rows.items()})

    def difference(self, expected: NamedRows) -> str:
        """In what the relation differs from the expected one, in words; empty if it does not."""
        if self.names != expected.names:
            return f"columns {list(self.names)}, expected {list(expected.names)}"
        missing, unexpected = expected.rows - self.rows, self.rows - expected.rows
        if not missing and not unexpected:
            return ""
        return f"columns {list(self.names)}: missing {_few(missing)}, unexpected {_few(unexpected)}"


def tuples(rows: pa.Table | pa.RecordBatch) -> list[Values]:
    """Values in the order of the columns."""
    columns = [column.to_pylist() for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def rows_in_order(rows: pa.Table | DataFrame, names: str) -> list[Values]:
    """All rows, sorted, with all visible columns in an order like ``"id, amount"``."""
    found = NamedRows.of_arrow(rows) if isinstance(rows, pa.Table) else NamedRows.of_spark(rows)
    hidden = [name for name in found.names if name.startswith("__st_")]
    chosen = found.in_order([*names.split(", "), *hidden]).elements()
    return sorted((row[: len(row) - len(hidden)] for row in chosen), key=repr)


def _few(rows: Counter[Values]) -> str:
    return "{" + ", ".join(" | ".join(map(str, row)) for row in [*rows.elements()][:_FEW]) + "}"
