"""What happens to a table in the windows; the same for the same seed.

more     copies of rows, and rows whose columns are from different ones; then rows of one value go
update   columns of some rows are NULL, or have the values of other rows; some rows go
empty    no rows remain
fill     the rows of the beginning, changed, are put into what is empty

Every table has three of these, one a window, and neighbors have them in another order: the sides of
a join are seldom empty together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

ORDERS = (("more", "update", "empty"), ("update", "empty", "fill"), ("empty", "fill", "more"))
WINDOWS = 3


class SourceTable:
    """A Delta table, and what happens to it."""

    def __init__(self, path: Path, first: pa.Table, random: Random, turn: int) -> None:
        """The rows are the first ones; the turn is the number of its order of windows."""
        self.path, self.first, self.random = path, first, random
        self.steps = ORDERS[turn % len(ORDERS)]

    def create(self, partitioned: bool) -> None:
        """With a random partition column, if one is wanted and can be."""
        self.path.mkdir(parents=True, exist_ok=True)
        feed = {"delta.enableChangeDataFeed": "true"} if self.random.random() < 0.5 else None
        by = self._partition() if partitioned else None
        write_deltalake(str(self.path), self.first, configuration=feed, partition_by=by)

    def _partition(self) -> list[str] | None:
        kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_date)
        fit = [f.name for f in self.first.schema if any(kind(f.type) for kind in kinds)]
        few = [n for n in fit if len(self.first[n].unique()) <= 20]
        return [self.random.choice(few)] if few and len(self.first.schema) > 1 else None

    @property
    def rows(self) -> pa.Table:
        """In an order that does not depend on the names of files."""
        found = DeltaTable(str(self.path)).to_pyarrow_table().select(self.first.column_names)
        texts = [repr(row) for row in found.to_pylist()]
        return found.take(_places(sorted(range(len(texts)), key=texts.__getitem__)))

    def move(self, window: int) -> None:
        """Let a window happen, from 1."""
        steps: dict[str, Callable[[pa.Table], None]] = {
            "more": self._more, "update": self._update, "empty": self._empty, "fill": self._fill,
        }  # fmt: skip
        steps[self.steps[window - 1]](self.rows)

    def _more(self, rows: pa.Table) -> None:
        from_rows = rows if rows.num_rows else self.first
        added = pa.concat_tables([some(from_rows, 0.3, self.random), mixed(from_rows, self.random)])
        self._write(added, "append")
        predicate = condition(from_rows, self.random)
        if predicate is None:
            self._write(some(self.rows, 0.8, self.random), "overwrite")
            return
        try:
            DeltaTable(str(self.path)).delete(predicate)
        except DeltaError:  # it does not rewrite files with some types
            self._write(some(self.rows, 0.8, self.random), "overwrite")

    def _update(self, rows: pa.Table) -> None:
        self._write(some(updated(rows, self.random), 0.85, self.random), "overwrite")

    def _empty(self, rows: pa.Table) -> None:
        self._write(rows.slice(0, 0), "overwrite")

    def _fill(self, _: pa.Table) -> None:
        self._write(updated(self.first, self.random), "append")
        self._write(some(self.first, 0.3, self.random), "append")

    def _write(self, rows: pa.Table, mode: str) -> None:
        write_deltalake(str(self.path), rows, mode=mode)  # type: ignore[arg-type]


def some(rows: pa.Table, part: float, random: Random) -> pa.Table:
    """A part of the rows, at least one if there are any."""
    count = rows.num_rows
    chosen = [i for i in range(count) if random.random() < part]
    return rows.take(_places(chosen or ([random.randrange(count)] if count else [])))


def mixed(rows: pa.Table, random: Random) -> pa.Table:
    """New rows: each column has the value of another row, or NULL."""
    count = rows.num_rows
    size = max(1, count // 5) if count else 0
    return _taken(rows, lambda _: [_other(count, random) for _ in range(size)])


def updated(rows: pa.Table, random: Random) -> pa.Table:
    """The rows, of which each fourth one has another value, or NULL, in one column."""
    count, width = rows.num_rows, len(rows.schema)
    places = {i: random.randrange(width) for i in range(count) if random.random() < 0.25}
    if count and not places:
        places = {random.randrange(count): random.randrange(width)}
    return _taken(
        rows, lambda at: [_other(count, random) if places.get(i) == at else i for i in range(count)]
    )


def _other(count: int, random: Random) -> int | None:
    return None if random.random() < 0.2 else random.randrange(count)


def _taken(rows: pa.Table, places: Callable[[int], list[int | None]]) -> pa.Table:
    """Each column from its own places; NULL where there is none."""
    columns = [
        column.combine_chunks().take(_places(places(at)))
        for at, column in enumerate(rows.itercolumns())
    ]
    return pa.table(columns, schema=rows.schema)


def _places(places: Sequence[int | None]) -> pa.Array:
    """With a type, which a list of nothing has not."""
    return pa.array(places, pa.int64())


def condition(rows: pa.Table, random: Random) -> str | None:
    """The rows with some value in some column; None if no column has values of a simple type."""
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean)
    fit = [f.name for f in rows.schema if any(kind(f.type) for kind in kinds)]
    if not fit or not rows.num_rows:
        return None
    name = random.choice(fit)
    value = rows[name][random.randrange(rows.num_rows)].as_py()
    quoted = '"' + name.replace('"', '""') + '"'
    if value is None:
        return f"{quoted} IS NULL"
    text = str(value).replace("'", "''")
    return f"{quoted} = '{text}'" if isinstance(value, str) else f"{quoted} = {value}"
