"""Messages about rows of one table → the rows of `change_schema`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.replication.model.replication_model import change_schema
from dagster_streamtables.replication.postgres.pgoutput import DELETE, INSERT, TRUNCATE, Messages
from dagster_streamtables.replication.postgres.table_form import TableForm
from dagster_streamtables.runtime.delta.arrow import np, pa, pc

TEXT, UNCHANGED = b"tu"
INLINE = 12
"""Bytes that a view of Arrow holds itself; longer values are looked up in the messages."""


@dataclass(frozen=True)
class TextColumn:
    messages: Messages
    starts: np.ndarray
    lengths: np.ndarray
    kinds: np.ndarray
    """For each value: t for a text, n for a NULL, u for one that was not sent."""

    @property
    def toast_mask(self) -> np.ndarray:
        return self.kinds == UNCHANGED

    def to_arrow(self) -> pa.Array:
        """The bytes of the values; NULL if there are none."""
        views = np.zeros((len(self.starts), 16), np.uint8)
        views[:, :4] = self.lengths.astype("<i4")[:, None].view(np.uint8)
        head = self.messages.bytes[self.starts[:, None] + np.arange(INLINE)]
        head[np.arange(INLINE) >= self.lengths[:, None]] = 0
        long = self.lengths > INLINE
        head[long, 4:8] = 0  # the messages are the first and only buffer
        head[long, 8:] = self.starts[long].astype("<i4")[:, None].view(np.uint8)
        views[:, 4:] = head
        known = np.packbits(self.kinds == TEXT, bitorder="little")
        buffers = [pa.py_buffer(each) for each in (known, views, self.messages.data)]
        found = pa.Array.from_buffers(pa.binary_view(), len(views), buffers)
        return found.cast(pa.binary())


def columns_at(
    messages: Messages, at: np.ndarray, count: int
) -> tuple[list[TextColumn], np.ndarray]:
    """The columns of the rows that begin at some places, and where the rows end."""
    columns, at = [], at + 2  # the count of columns
    for _ in range(count):
        kinds = messages.bytes[at]
        is_text = kinds == TEXT
        lengths = np.where(is_text, messages.int32(at + 1), 0)
        columns.append(TextColumn(messages, at + 5, lengths, kinds))
        at = np.where(is_text, at + 5 + lengths, at + 1)
    return columns, at


NAMES = {INSERT: "insert", ord("U"): "update", DELETE: "delete", TRUNCATE: "truncate"}
WHOLE = ord("N")
"""Before a row as it is afterwards. Rows as they were follow a K or an O."""
TUPLE = 6
"""Bytes of a message before its first row: its kind, the table, and the kind of the row."""


@dataclass(frozen=True)
class RowMessages:
    """Messages about one table, all of the same form, in order."""

    messages: Messages
    chosen: np.ndarray
    """Their indices. A truncate may concern other tables also."""
    transactions: np.ndarray
    """For each of them, its transaction."""
    form: TableForm
    sent: Sequence[str]
    """The columns of the rows, as they come."""

    def rows(self) -> pa.Table:
        schema = change_schema(self.form.table)
        identity = self.form.table.key_columns
        old = self._struct({name: self._old[0][name].to_arrow() for name in identity}, identity)
        new = self._struct(self._new_texts, self.form.table.schema.names)
        columns = [
            self._operations(),
            pa.array(self.transactions, pa.int32()),
            _spread(old, self._has_old, self._tells_old()),
            _spread(new, self._has_new, self._has_new),
            self._toast_indices(),
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    @cached_property
    def _kinds(self) -> np.ndarray:
        return self.messages.kinds[self.chosen]

    @cached_property
    def _starts(self) -> np.ndarray:
        return self.messages.starts[self.chosen]

    @cached_property
    def _has_new(self) -> np.ndarray:
        return (self._kinds != DELETE) & (self._kinds != TRUNCATE)

    @cached_property
    def _has_old(self) -> np.ndarray:
        first = self.messages.bytes[self._starts + TUPLE - 1]
        return (self._kinds != TRUNCATE) & (first != WHOLE)

    @cached_property
    def _old(self) -> tuple[dict[str, TextColumn], np.ndarray]:
        at = self._starts[self._has_old] + TUPLE
        columns, ends = columns_at(self.messages, at, len(self.sent))
        return dict(zip(self.sent, columns, strict=True)), ends

    @cached_property
    def _new(self) -> dict[str, TextColumn]:
        at = self._starts + TUPLE
        at[self._has_old] = self._old[1] + 1
        columns, _ = columns_at(self.messages, at[self._has_new], len(self.sent))
        return dict(zip(self.sent, columns, strict=True))

    @cached_property
    def _before(self) -> np.ndarray:
        """For each new row, the index of its old one; -1 for none."""
        numbers = np.where(self._has_old, np.cumsum(self._has_old) - 1, -1)
        return numbers[self._has_new]

    @cached_property
    def _new_texts(self) -> dict[str, pa.Array]:
        """The new values. Unchanged ones are taken from the old row, if it was sent."""
        old, _ = self._old
        texts = {}
        for name, column in self._new.items():
            texts[name] = text = column.to_arrow()
            told = self._from_old_row(name)
            if told.any():
                before = take_or_null(old[name].to_arrow(), self._before)
                texts[name] = pc.if_else(pa.array(told), before, text)
        return texts

    def _from_old_row(self, name: str) -> np.ndarray:
        """Which of the new values only the old row has."""
        kinds = self._old[0][name].kinds
        if not len(kinds):
            return np.zeros(len(self._before), bool)
        is_there = (self._before >= 0) & (kinds[self._before] == TEXT)
        return self._new[name].toast_mask & is_there

    def _struct(self, texts: dict[str, pa.Array], names: Sequence[str]) -> pa.Array:
        typed = [each for each in self.form.columns if each.name in names]
        arrays = [each.values(texts[each.name]) for each in typed]
        fields = [self.form.table.schema.field(each.name) for each in typed]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def _tells_old(self) -> np.ndarray:
        """Whether the old row is published: not if the identity stays as it was."""
        is_told = self._has_old.copy()
        if self.form.table.identity is None:
            return is_told
        both = self._has_old & self._has_new
        has_both = self._before >= 0
        before = self._before[has_both]
        differs = np.zeros(len(before), bool)
        for name in self.form.table.key_columns:
            new = self._new_texts[name].filter(has_both)
            differs |= _differ(take_or_null(self._old[0][name].to_arrow(), before), new)
        is_told[both] = differs
        return is_told

    def _operations(self) -> pa.Array:
        codes = np.zeros(256, np.int8)
        codes[list(NAMES)] = range(len(NAMES))
        words = pa.array(list(NAMES.values()), pa.string())
        return words.take(pa.array(codes[self._kinds]))

    def _toast_indices(self) -> pa.Array:
        flags = [
            self._new[each.name].toast_mask & ~self._from_old_row(each.name)
            for each in self.form.columns
        ]
        untold = np.stack(flags, axis=1) if flags else np.zeros((0, 0), bool)
        columns = np.nonzero(untold)[1]
        counts = np.zeros(len(self.chosen), np.int64)
        counts[np.flatnonzero(self._has_new)] = untold.sum(axis=1)
        ends = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
        nothing = np.append(counts == 0, False)
        ends = pc.if_else(pa.array(nothing), None, ends)
        return pa.ListArray.from_arrays(ends, pa.array(columns, pa.int16()))


def _spread(rows: pa.Array, there: np.ndarray, told: np.ndarray) -> pa.Array:
    """The rows of the changes that have one → one for each change, NULL where it is not told."""
    if len(rows) == len(there) and told.all():
        return rows
    return take_or_null(rows, np.where(told, np.cumsum(there) - 1, -1))


def take_or_null(array: pa.Array, indices: np.ndarray) -> pa.Array:
    """Elements; NULL for -1."""
    return array.take(pa.array(indices, mask=indices < 0))


def _differ(one: pa.Array, other: pa.Array) -> np.ndarray:
    """NULL differs from everything but NULL."""
    equal = pc.fill_null(pc.equal(one, other), False)
    both_null = pc.and_(one.is_null(), other.is_null())
    return pc.invert(pc.or_(equal, both_null)).to_numpy(zero_copy_only=False)
