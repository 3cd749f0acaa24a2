"""The changed rows of a timestamp, in the columns, the envelope and the order of a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, islice

from dagster_streamtables.changes.output.output_options import (
    NAMES,
    Envelope,
    Given,
    Term,
    check_distinct,
    check_ordered,
    order_terms,
    plain_type,
    sort_indices,
    whole,
    whole_order,
)
from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.arrow import pa, pc

INSERT, UPDATE, DELETE, VIOLATION = range(4)
"""The cases of a group, by their places in `Envelope.states`."""

ENOUGH = 3
"""A group of three rows violates the key, whatever follows."""


@dataclass(frozen=True)
class KeyGroups:
    """For each key, numbers of rows; NULL for no row."""

    first: pa.Array
    before: pa.Array
    after: pa.Array
    case: pa.Array
    ascending: bool = True
    """Whether the numbers ascend; else the rows themselves are not sorted."""

    def __len__(self) -> int:
        return len(self.first)

    def slice(self, start: int, length: int) -> KeyGroups:
        parts = (self.first, self.before, self.after, self.case)
        return KeyGroups(*(part.slice(start, length) for part in parts), ascending=self.ascending)

    def through(self, order: pa.Array) -> KeyGroups:
        """The same groups, of rows that are not sorted but have this order."""
        return KeyGroups(
            order.take(self.first),
            order.take(self.before),
            order.take(self.after),
            self.case,
            ascending=False,
        )

    def gather(self, values: pa.Array, numbers: pa.Array) -> pa.Array:
        """The values of the rows with these numbers, which are some of the groups'. Nothing is
        copied if each row is a group, as in a snapshot."""
        if self.ascending and len(numbers) and not numbers.null_count:
            first, last = numbers[0].as_py(), numbers[-1].as_py()
            if last - first == len(numbers) - 1:
                return values.slice(first, len(numbers))
        return values.take(numbers)


def groups_of(keys: Sequence[pa.Array], diffs: pa.Array) -> KeyGroups:
    """The groups of rows that are sorted by their keys, and within a key by their diffs."""
    differs = reduce(pc.or_, (_differs(values) for values in keys))
    first = pc.indices_nonzero(pa.chunked_array([pa.array([True]), differs]))
    end = pa.concat_arrays([first.slice(1), pa.array([len(diffs)], pa.uint64())])
    last = pc.subtract(end, pa.scalar(1, pa.uint64()))
    size = pc.subtract(end, first)
    lowest, highest = diffs.take(first), diffs.take(last)
    alone, pair = pc.equal(size, 1), pc.equal(size, 2)
    came = pc.and_(alone, pc.equal(highest, 1))
    went = pc.and_(alone, pc.equal(lowest, -1))
    replaced = pc.and_(pair, pc.and_(pc.equal(lowest, -1), pc.equal(highest, 1)))
    case = pc.if_else(came, INSERT, pc.if_else(replaced, UPDATE, pc.if_else(went, DELETE, 3)))
    nothing = pa.scalar(None, pa.uint64())
    return KeyGroups(
        first,
        before=pc.if_else(pc.or_(went, replaced), first, nothing),
        after=pc.if_else(pc.or_(came, replaced), last, nothing),
        case=case,
    )


def _differs(values: pa.Array) -> pa.Array:
    """Whether each value but the first is distinct from the one before it.

    NULL equals NULL and NaN equals NaN, as they do in Spark's groups.
    """
    if values.null_count == len(values):
        return pa.repeat(pa.scalar(False), len(values) - 1)
    ahead, behind = values.slice(1), values.slice(0, len(values) - 1)
    differs = pc.not_equal(ahead, behind)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(ahead), pc.is_nan(behind))
        differs = pc.and_not(differs, both)
    if not values.null_count:
        return differs
    # NULL if either is: then they differ if only one is.
    return pc.coalesce(differs, pc.xor(pc.is_null(ahead), pc.is_null(behind)))


def fill_batches(tables: Iterable[pa.Table], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of this size, but for the last one."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        while table.num_rows:
            part = table.slice(0, size - count)
            table = table.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == size:
                yield _batch(held)
                held, count = [], 0
    if held:
        yield _batch(held)


def _batch(tables: Sequence[pa.Table]) -> pa.RecordBatch:
    table = pa.concat_tables(tables)
    return pa.RecordBatch.from_arrays([whole(each) for each in table.columns], schema=table.schema)


@dataclass(frozen=True)
class OutputLayout:
    relation: pa.Schema
    """The columns of the relation, in the types in which they are given out."""
    key: tuple[str, ...]
    """The columns of the envelope's key."""
    values: tuple[str, ...]
    """The other columns of the relation, with an envelope."""
    moment: pa.Schema
    """The columns for the time of a change."""
    changes: pa.Schema
    """The columns for the change, and for its row or key."""

    @property
    def whole(self) -> pa.Schema:
        return pa.schema([*self.moment, *self.changes])


def layout_of(
    schema: pa.Schema, envelope: Envelope | None, *, progress: bool, names: str
) -> OutputLayout:
    """The columns for a relation of this schema; refuses two columns of one name."""
    relation = pa.schema([each.with_type(plain_type(each.type)) for each in schema])
    key = envelope.key_in(relation.names) if envelope else ()
    values = tuple(name for name in relation.names if name not in key) if envelope else ()
    leading = NAMES[names]
    changes = list(relation)
    if envelope:
        changes = [relation.field(name) for name in key]
        for prefix, _ in envelope.sides:
            sided = (relation.field(name).with_name(prefix + name) for name in values)
            changes += [field.with_nullable(True) for field in sided]
    if progress:
        changes = [field.with_nullable(True) for field in changes]
    how = pa.field(leading.state, pa.string()) if envelope else pa.field(leading.diff, pa.int64())
    timestamp = pa.field(leading.timestamp, pa.int64(), nullable=False)
    progressed = pa.field(leading.progressed, pa.bool_(), nullable=False)
    moment = pa.schema([timestamp, progressed] if progress else [timestamp])
    prefixes = [prefix for prefix, _ in envelope.sides if prefix] if envelope else []
    added = [*moment.names, how.name, *(prefix + name for prefix in prefixes for name in values)]
    check_distinct(names, relation.names, kept=key if prefixes else relation.names, added=added)
    return OutputLayout(relation, key, values, moment, pa.schema([how, *changes]))


class RowEncoder:
    """The output of one subscription.

    Attributes:
        schema: The columns of all batches.
        ordering: The order that the chunks of `rows` must have if there is more than one.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        envelope: Envelope | None = None,
        order_by: Given = (),
        progress: bool = False,
        names: str = "delta",
        batch_rows: int = 65_536,
    ) -> None:
        """Args: schema: The columns of the relation, without the diff."""
        if envelope is not None and order_by:
            raise RefusedOperation(
                "an envelope and an order cannot be combined",
                why="the rows of an envelope are sorted by its key",
                fix="leave out order_by, or the envelope",
            )
        self._layout = layout_of(schema, envelope, progress=progress, names=names)
        self._envelope, self._progress, self._batch_rows = envelope, progress, batch_rows
        self.schema = self._layout.whole
        self.ordering = self._ordering(order_by)

    def rows(self, timestamp: int, chunks: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The rows of one timestamp, in batches of `batch_rows`; the last one may have fewer.

        Args:
            chunks: Its consolidated rows, with their diffs as ``WEIGHT``: each distinct row once.
                One chunk may be in any order; several must be sorted by `ordering`.
        """
        some = (chunk for chunk in chunks if chunk.num_rows)
        ahead = list(islice(some, 2))
        order = self.ordering if len(ahead) == 1 else ()
        tables = map(self._typed, chain(_drain(ahead), some))
        changes = self._by_key(tables, order) if self._envelope else self._raw(tables, order)
        stamp = [pa.scalar(timestamp, pa.int64()), *([pa.scalar(False)] * self._progress)]
        for batch in fill_batches(changes, self._batch_rows):
            repeated = [pa.repeat(value, batch.num_rows) for value in stamp]
            columns = [*repeated, *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def progress(self, timestamp: int) -> pa.RecordBatch:
        """The row that means: no more rows of earlier timestamps. Only for output with progress."""
        nothing = [pa.nulls(1, field.type) for field in self._layout.changes]
        stamp = [pa.array([timestamp], pa.int64()), pa.array([True])]
        return pa.RecordBatch.from_arrays([*stamp, *nothing], schema=self.schema)

    def _ordering(self, order_by: Given) -> tuple[Term, ...]:
        if self._envelope:
            for column in self._layout.key:
                check_ordered(self._layout.relation, column, "a key")
            return (*(Term(column) for column in self._layout.key), Term(WEIGHT))
        terms = order_terms(order_by, self._layout.relation.names)
        for term in terms:
            if term.column != WEIGHT:
                check_ordered(self._layout.relation, term.column, "sorted by")
        return whole_order(terms, self._layout.relation) if terms else ()

    def _typed(self, chunk: pa.Table) -> pa.Table:
        """The columns in the order and of the types of the relation, and the diff."""
        columns = [chunk.column(field.name).cast(field.type) for field in self._layout.relation]
        diff = chunk.column(WEIGHT).cast(pa.int64())
        return pa.table([*columns, diff], names=[*self._layout.relation.names, WEIGHT])

    def _raw(self, tables: Iterable[pa.Table], order: Sequence[Term]) -> Iterator[pa.Table]:
        for table in tables:
            columns = [table.column(name) for name in (WEIGHT, *self._layout.relation.names)]
            rows = pa.Table.from_arrays(columns, schema=self._layout.changes)
            if not order:
                yield rows
                continue
            rows, numbers = rows.combine_chunks(), sort_indices(table, order)
            for start in range(0, rows.num_rows, self._batch_rows):
                yield rows.take(numbers.slice(start, self._batch_rows))

    def _by_key(self, tables: Iterable[pa.Table], order: Sequence[Term]) -> Iterator[pa.Table]:
        held = None
        for table in tables:
            if order:
                yield from self._states(table, self._groups(table, order))
                continue
            table = pa.concat_tables([held, table]) if held is not None else table
            table = table.combine_chunks()
            groups = self._groups(table)
            # The next chunk may begin with more rows of the last key.
            ended = len(groups) - 1
            yield from self._states(table, groups.slice(0, ended))
            held = table.slice(groups.first[ended].as_py(), ENOUGH)
        if held is not None:
            yield from self._states(held, self._groups(held))

    def _groups(self, table: pa.Table, order: Sequence[Term] = ()) -> KeyGroups:
        *keys, diffs = (whole(table.column(name)) for name in (*self._layout.key, WEIGHT))
        if not order:
            return groups_of(keys, diffs)
        numbers = sort_indices(table, order)
        groups = groups_of([each.take(numbers) for each in keys], diffs.take(numbers))
        return groups.through(numbers)

    def _states(self, table: pa.Table, groups: KeyGroups) -> Iterator[pa.Table]:
        assert self._envelope
        states = pa.array(self._envelope.states)
        columns = {name: whole(table.column(name)) for name in self._layout.relation.names}
        for start in range(0, len(groups), self._batch_rows):
            part = groups.slice(start, self._batch_rows)
            arrays = [states.take(part.case)]
            arrays += [part.gather(columns[name], part.first) for name in self._layout.key]
            for _, side in self._envelope.sides:
                numbers = part.before if side == "before" else part.after
                arrays += [part.gather(columns[name], numbers) for name in self._layout.values]
            yield pa.Table.from_arrays(arrays, schema=self._layout.changes)


def _drain(chunks: list[pa.Table]) -> Iterator[pa.Table]:
    """The chunks, none of which stays in memory after use."""
    while chunks:
        yield chunks.pop(0)
