"""`Read`: the messages that a slot holds → the changes of each table, as a `Batch`.

If the columns of a table change inside a transaction, its earlier rows get the later columns
(`reshape_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import psycopg

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    LostTable,
    PublishedTable,
    TableChanges,
    change_schema,
)
from dagster_streamtables.replication.model.rows_on_disk import on_disk
from dagster_streamtables.replication.postgres.change_rows import RowMessages
from dagster_streamtables.replication.postgres.logical_slots import lsn_text
from dagster_streamtables.replication.postgres.pgoutput import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    RELATION,
    TRUNCATE,
    UPDATE,
    Messages,
    ServerRelation,
)
from dagster_streamtables.replication.postgres.snapshot import chunks_of
from dagster_streamtables.replication.postgres.table_form import TableForm
from dagster_streamtables.runtime.delta.arrow import np, pa

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection


QUERY = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(
        %s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s{more})
"""
BEGINS = """
    SELECT extract(epoch FROM clock_timestamp()) - extract(epoch FROM timestamptz '2000-01-01Z')
        - ('x' || encode(substring(data FROM 10 FOR 8), 'hex'))::bit(64)::int8 / 1e6
    FROM ({query}) AS messages
    WHERE get_byte(data, 0) = ascii('B')
        AND ('x' || encode(substring(data FROM 2 FOR 8), 'hex'))::bit(64)::int8 >= %s
    LIMIT 1
"""
AT_ONCE = 100
"""Messages that the client holds besides those that are decoded: they may be large."""


def peek(
    connection: Connection,
    slot: str,
    publications: Sequence[str],
    *,
    up_to: int,
    max_messages: int,
    options: Mapping[str, str],
) -> Iterator[bytes]:
    """Messages of whole transactions that end at or before `up_to`, until one reaches
    `max_messages`. The connection is in use until the last message."""
    size = AT_ONCE if psycopg.capabilities.has_stream_chunked() else 1
    values = _values(slot, publications, up_to, max_messages)
    with connection.cursor() as cursor:
        # The options are constants of this package.
        for row in cursor.stream(_query(options), values, binary=True, size=size):  # type: ignore[arg-type]
            yield row[0]


def oldest_commit(
    connection: Connection,
    slot: str,
    publications: Sequence[str],
    *,
    up_to: int,
    behind: int,
    is_first: bool,
    options: Mapping[str, str],
) -> float:
    """The age in seconds of the first transaction after a position, up to another; 0 for none.

    Args:
        behind: The position.
        is_first: Whether the slot is at it, so that its first transaction is the one.
    """
    query = BEGINS.format(query=_query(options))
    values = _values(slot, publications, up_to, 1 if is_first else None)
    row = connection.execute(query, [*values, behind]).fetchone()  # type: ignore[arg-type]
    return max(0.0, float(row[0])) if row else 0.0


def options_of(connection: Connection, *, local_only: bool) -> dict[str, str]:
    """Raise `PublisherProblem` if the server cannot leave out changes by a replication."""
    if not local_only:
        return {}
    if connection.info.server_version < 160000:
        raise PublisherProblem(
            'the server does not support origin "none"',
            why="PostgreSQL tells the origin of changes since version 16",
            fix="publish only tables that no replication writes to, and take all changes: "
            "streamtables replications alter NAME --origin any",
        )
    return {"origin": "none"}


def _query(options: Mapping[str, str]) -> str:
    more = "".join(f", '{name}', '{value}'" for name, value in options.items())
    return QUERY.format(more=more)


def _values(
    slot: str, publications: Sequence[str], up_to: int, max_messages: int | None
) -> list[Any]:
    names = ",".join('"' + name.replace('"', '""') + '"' for name in publications)
    return [slot, lsn_text(up_to), max_messages, names]


ROWS, BYTES = 50_000, 16_000_000
"""Messages that are decoded at once."""
IN_MEMORY = 64_000_000
"""Bytes of decoded rows; more of them are on disk, since a transaction may be of any size."""


@dataclass(frozen=True)
class Piece:
    form: TableForm
    rows: pa.Table
    """Their transactions are counted from the first that was read."""
    is_on_disk: bool = False

    @property
    def first(self) -> int:
        """The first of its transactions."""
        return self.rows["transaction"][0].as_py()

    def rows_before(self, cut: int | None) -> pa.Table:
        """The rows of the transactions before one; all if it is None."""
        if cut is None:
            return self.rows
        return self.rows.slice(0, int(np.searchsorted(self.rows["transaction"].to_numpy(), cut)))


def begin_columns(
    pieces: list[Piece], form: TableForm, transaction: int, cut: int | None
) -> int | None:
    """From a transaction on, a table has other columns: earlier transactions are a separate batch,
    and earlier changes of the same transaction get the columns that it ends with.

    Args:
        pieces: The earlier changes of the table.
        cut: The first transaction that belongs to the next batch so far.

    Returns:
        The first transaction that belongs to the next batch.
    """
    if not pieces or pieces[-1].form.has_columns_of(form):
        return cut
    if pieces[0].first < transaction:
        return transaction if cut is None else min(cut, transaction)
    pieces[:] = [
        Piece(form, reshape_rows(each.rows, each.form.table, form.table)) for each in pieces
    ]
    return cut


@dataclass
class Read:
    """What was read, table by table, before it becomes a batch."""

    after: Mapping[str, int]
    form_of: Callable[[ServerRelation], TableForm]
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    messages: int = 0
    passed: int = 0
    """Messages that every table has applied: the slot waits for another table, which is stopped."""
    refused: dict[str, PublisherProblem] = field(default_factory=dict)
    """By table, why its changes cannot be read."""
    cut: int | None = None
    """The first transaction that belongs to the next batch, since it has other columns."""
    _relations: dict[int, ServerRelation] = field(default_factory=dict)
    _starts: list[np.ndarray] = field(default_factory=lambda: [])
    _ends: list[np.ndarray] = field(default_factory=lambda: [])

    def decode(self, messages: Iterable[bytes]) -> None:
        for some in chunks_of(messages, ROWS, BYTES):
            self._decode(Messages.of(some))
            self.messages += len(some)
            spare_memory(self.pieces)
            if self.cut is not None:
                return

    @property
    def starts(self) -> np.ndarray:
        """The LSN of the record of each commit, known before the changes come."""
        return np.concatenate([np.zeros(0, np.int64), *self._starts])

    @property
    def ends(self) -> np.ndarray:
        """The LSN after the record of each commit, known after the changes. It is the position."""
        return np.concatenate([np.zeros(0, np.int64), *self._ends])

    def _decode(self, messages: Messages) -> None:
        begun = sum(map(len, self._starts))
        transactions = begun - 1 + np.cumsum(messages.kinds == BEGIN)
        begins = messages.starts[messages.of_kind(BEGIN)]
        self._starts.append(messages.int64(begins + 1))
        commits = messages.starts[messages.of_kind(COMMIT)]
        self._ends.append(messages.int64(commits + 10))
        if self.after:
            is_passed = self.starts[np.maximum(transactions, 0)] < min(self.after.values())
            self.passed += int(is_passed.sum())
        for segment in self._segments(messages):
            self._take(messages, transactions, *segment)

    def _segments(
        self, messages: Messages
    ) -> Iterator[tuple[ServerRelation, np.ndarray, int | None]]:
        """For each table, the messages between those with its columns.

        Yields:
            The table, the messages about its rows, and the message with its columns if it is among
            these.
        """
        told: dict[int, list[int]] = {}
        for index in messages.of_kind(RELATION).tolist():
            told.setdefault(int(messages.relations[index]), []).append(index)
        about = _about(messages)
        for oid in [*told, *(about.keys() - told.keys())]:
            chosen = about.get(oid, np.zeros(0, np.int64))
            bounds = [0, *np.searchsorted(chosen, told.get(oid, [])).tolist(), len(chosen)]
            for i, first in enumerate([None, *told.get(oid, [])]):
                if first is not None:
                    self._relations[oid] = messages.relation(first)
                part = chosen[bounds[i] : bounds[i + 1]]
                if oid in self._relations and (len(part) or first is not None):
                    yield self._relations[oid], part, first

    def _take(
        self, messages: Messages, transactions: np.ndarray, relation: ServerRelation,
        chosen: np.ndarray, told: int | None,
    ) -> None:  # fmt: skip
        name = relation.name
        if name not in self.after or name in self.refused:
            return
        # A commit that begins before a position ends at or before it.
        applied = self.starts[transactions[chosen]] < self.after[name]
        chosen = chosen[~applied]
        try:
            form = self.form_of(relation)
            if told is not None:
                earlier = self.pieces.get(name, [])
                self.cut = begin_columns(earlier, form, int(transactions[told]), self.cut)
            if len(chosen):
                sent = [each.name for each in relation.columns]
                rows = RowMessages(messages, chosen, transactions[chosen], form, sent).rows()
                self.pieces.setdefault(name, []).append(Piece(form, rows))
        except PublisherProblem as error:
            self.refused[name] = error
            self.pieces.pop(name, None)


def spare_memory(read: dict[str, list[Piece]]) -> None:
    """A file takes all rows of a table that are in memory, so that there are few files."""
    held = {name: [each for each in pieces if not each.is_on_disk] for name, pieces in read.items()}
    if sum(each.rows.nbytes for pieces in held.values() for each in pieces) <= IN_MEMORY:
        return
    for name, pieces in held.items():
        spared = read[name][: len(read[name]) - len(pieces)]
        for _, those in groupby(pieces, lambda each: id(each.form)):
            some = [*those]
            rows = on_disk(pa.concat_tables([each.rows for each in some]))
            spared.append(Piece(some[0].form, rows, is_on_disk=True))
        read[name] = spared


def _renumber(rows: pa.Table) -> tuple[np.ndarray, pa.Table]:
    """The transactions of changes, which are in their order, and the changes with their places
    among these."""
    numbers = rows["transaction"].to_numpy()
    is_next = np.diff(numbers, prepend=numbers[:1] - 1) != 0
    used, numbers = numbers[is_next], np.cumsum(is_next, dtype=np.int32) - np.int32(1)
    place = rows.schema.get_field_index("transaction")
    return used, rows.set_column(place, rows.schema.field(place), pa.array(numbers))


def _about(messages: Messages) -> dict[int, np.ndarray]:
    """By table, the indices of the messages about its rows."""
    rows = messages.of_kind(INSERT, UPDATE, DELETE)
    oids = messages.relations[rows]
    found = {oid: rows[oids == oid] for oid in np.unique(oids).tolist()}
    for index in messages.of_kind(TRUNCATE).tolist():
        for oid in messages.truncation_oids(index):
            others = found.get(oid, np.zeros(0, np.int64))
            found[oid] = np.insert(others, np.searchsorted(others, index), index)
    return found


def batch_of(read: Read, up_to: int, max_rows: int) -> Batch:
    """
    Args:
        read: What was read, whole transactions only.
        up_to: The requested position.
        max_rows: The number of messages after which the server stopped at the end of a transaction.
    """
    stopped = read.cut is not None or read.messages >= max_rows
    ends = read.ends[: read.cut]
    last = int(ends[-1]) if len(ends) else 0
    end = last if stopped else max(last, up_to)
    return Batch(
        tables=changes_of(read.pieces, read.cut, read.ends),
        end={
            name: max(end, position)
            for name, position in read.after.items()
            if name not in read.refused
        },
        complete=not stopped,
        refused=read.refused,
    )


def changes_of(
    pieces: Mapping[str, Sequence[Piece]], cut: int | None, positions: np.ndarray
) -> dict[str, TableChanges]:
    """
    Args:
        pieces: By table.
        cut: The first transaction that does not count.
        positions: The positions of all transactions.
    """
    found: dict[str, TableChanges] = {}
    for name, every in pieces.items():
        # After the cut a table may have other columns.
        some = [each for each in every if cut is None or each.first < cut]
        if some:
            used, rows = _renumber(pa.concat_tables([each.rows_before(cut) for each in some]))
            at = tuple(positions[used].tolist())
            found[name] = TableChanges(some[0].form.table, at, rows)
    return found


def reshape_rows(rows: pa.Table, earlier: PublishedTable, later: PublishedTable) -> pa.Table:
    """Raise `LostTable` if columns were not only added, or not only dropped: a column may have
    another name, which no message tells."""
    before, after = set(earlier.schema.names), set(later.schema.names)
    kept = [earlier.schema.field(name) for name in before & after]
    if (
        (before - after and after - before)
        or earlier.identity != later.identity
        or any(later.schema.field(each.name) != each for each in kept)
    ):
        raise LostTable(
            f'a transaction changed columns of "{later.name}" after it had changed its rows',
            why="the server does not tell how its earlier rows became the later ones",
            fix="copy the table again",
        )
    untold = (after - before) & later.untold
    if untold:
        raise LostTable(
            f'a transaction added column "{min(untold)}" to "{later.name}" after it had changed '
            "its rows",
            why="the server does not tell the values that these rows got by its default",
            fix="copy the table again",
        )
    schema = change_schema(later)
    new = _struct(rows["new"], schema.field("new").type, later)
    old = _struct(rows["old"], schema.field("old").type, later)
    parts = [rows["op"], rows["transaction"], old, new, _remap_columns(rows, earlier, later)]
    return pa.Table.from_arrays(parts, schema=schema)


def _struct(rows: pa.ChunkedArray, kind: pa.StructType, table: PublishedTable) -> pa.Array:
    found = rows.combine_chunks()
    there = set(found.type.names)
    columns = [
        found.field(each.name)
        if each.name in there
        else pa.array([table.fills.get(each.name)] * len(found), each.type)
        for each in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=found.is_null())


def _remap_columns(rows: pa.Table, earlier: PublishedTable, later: PublishedTable) -> pa.Array:
    """The indices of columns, counted again."""
    places = {name: i for i, name in enumerate(later.schema.names)}
    names = earlier.schema.names
    counted = [
        columns and [places[names[i]] for i in columns if names[i] in places]
        for columns in rows["unchanged"].to_pylist()
    ]
    return pa.array(counted, pa.list_(pa.int16()))
