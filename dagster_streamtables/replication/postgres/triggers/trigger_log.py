"""Rows of a trigger log: read from the server, and the table and columns of each one."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from psycopg import sql

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres.pgoutput import ServerRelation
from dagster_streamtables.replication.postgres.publication_catalog import (
    CatalogColumn,
    CatalogTable,
)
from dagster_streamtables.replication.postgres.snapshot import texts_of
from dagster_streamtables.replication.postgres.table_form import Forms, TableForm
from dagster_streamtables.replication.postgres.triggers.capture_objects import function_of, log_of
from dagster_streamtables.runtime.delta.arrow import np, pa

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.triggers.capture_objects import CaptureState
    from dagster_streamtables.replication.postgres.triggers.snapshot_windows import (
        WindowTransaction,
    )


QUERY = """
    COPY (
        SELECT op, place, statement, depth, relation, shape, {shown}, changed
        FROM {log} AS l JOIN (SELECT * FROM unnest({transactions}::bigint[])
            WITH ORDINALITY AS t (xid, place)) AS t USING (xid)
        ORDER BY place, statement, ordinal, op DESC
    ) TO STDOUT (FORMAT csv)
"""
ROWS, BYTES = 100_000, 32_000_000
"""Of a part, unless more must be at hand together."""
INSERT, DELETE, BEFORE, AFTER, TRUNCATE = b"IDuUT"


@dataclass(frozen=True)
class LogRows:
    """In order: the row before an update precedes the row after it."""

    ops: np.ndarray
    places: np.ndarray
    """The places of their transactions, from 0."""
    statements: np.ndarray
    depths: np.ndarray
    """How many triggers were at work: more than 1 if a trigger made the change."""
    relations: np.ndarray
    shapes: np.ndarray
    shown: np.ndarray
    """Whether the publications show the row."""
    texts: pa.Array
    """The row, as the server writes a whole row; NULL for a truncate."""

    def __len__(self) -> int:
        return len(self.ops)


def rows_of(
    connection: Connection,
    capture: CaptureState,
    transactions: Sequence[WindowTransaction],
    shown: sql.Composable,
) -> Generator[LogRows, None, None]:
    """
    Args:
        connection: In use until the last part.
        transactions: In the order in which they are wanted.
        shown: A condition over the log, called l.

    Yields:
        Whole changes, and whole transactions if these are tangled.
    """
    query = sql.SQL(QUERY).format(
        log=log_of(capture.number),
        transactions=sql.Literal(f"{{{','.join(str(each.xid) for each in transactions)}}}"),
        shown=shown,
    )
    whole = {str(i).encode() for i, each in enumerate(transactions, 1) if each.is_tangled}
    lines: list[bytes] = []
    size, last, follows = 0, b"", False
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for read in copy:
            line = bytes(read)
            transaction = line[2 : line.index(b",", 2)]
            is_full = len(lines) >= ROWS or size >= BYTES
            if is_full and (transaction != last or not (transaction in whole or follows)):
                yield _parse_rows(lines)
                lines, size = [], 0
            lines.append(line)
            size, last, follows = size + len(line), transaction, line[0] == BEFORE
    if lines:
        yield _parse_rows(lines)


def _parse_rows(lines: list[bytes]) -> LogRows:
    op, *numbers, shown, changed = texts_of(b"".join(lines), 8)
    integers = [each.cast(pa.string()).cast(pa.int64()).to_numpy() for each in numbers]
    place, statement, depth, relation, shape = integers
    return LogRows(
        ops=np.frombuffer(b"".join(op.to_pylist()), np.uint8),
        places=place - 1,
        statements=statement,
        depths=depth,
        relations=relation,
        shapes=shape,
        shown=np.array(shown.to_pylist()) == b"t",
        texts=changed,
    )


def columns_of(rows: pa.Array, count: int, table: str) -> list[pa.Array]:
    """The columns of rows that the server has written as text, as bytes.

    Raises:
        PublisherProblem: They have another number of columns.
    """
    # As CSV, but for backslashes, which are doubled; a field that has one is in quotes.
    lines = b"".join(text[1:-1] + b"\n" for text in rows.to_pylist())
    try:
        texts = texts_of(lines, count)
    except pa.ArrowInvalid as error:
        raise PublisherProblem(
            f'rows of "{table}" have other columns than their triggers saw',
            why="a transaction that had begun before the columns changed wrote them",
            fix="copy the table again",
        ) from error
    if b"\\\\" in lines:
        texts = [_plain(each) for each in texts]
    return texts


def _plain(texts: pa.Array) -> pa.Array:
    values = (each and each.replace(b"\\\\", b"\\") for each in texts.to_pylist())
    return pa.array(values, pa.binary())


SHAPES = """
    SELECT DISTINCT s.relation::int8, s.shape, s.columns FROM streamtables.shapes s
    JOIN streamtables.triggers t USING (relation) WHERE t.slot = %s
"""
# Triggers of a partition have a parent; those of a foreign key are also internal.
OTHERS = """
    SELECT DISTINCT t.name FROM streamtables.triggers t JOIN pg_trigger o ON o.tgrelid = t.relation
    WHERE t.slot = %s AND o.tgfoid <> to_regproc(%s) AND o.tgtype & 2 = 0
        AND (NOT o.tgisinternal OR o.tgfoid::regproc::text ~ '_(cascade|setnull|setdefault)_')
"""
NAMES = "SELECT relation::int8, name FROM streamtables.triggers WHERE slot = %s"


@dataclass(frozen=True)
class TriggerColumns:
    columns: tuple[CatalogColumn, ...]
    """As they come in the text of a row."""
    numbers: tuple[int, ...]
    """Their numbers, which stay when a column is renamed."""

    @classmethod
    def of(cls, text: str) -> TriggerColumns:
        found = json.loads(text)
        columns = (CatalogColumn(*each) for *each, _ in found)
        return cls(tuple(columns), tuple(number for *_, number in found))


@dataclass
class TriggerShapes:
    forms: Forms
    names: Mapping[int, str]
    """By table or partition, the name under which it is published."""
    shapes: Mapping[tuple[int, int], TriggerColumns]
    others: frozenset[str]
    """Tables that have triggers of others, which fire after their changes."""

    @classmethod
    def load(cls, connection: Connection, capture: CaptureState, forms: Forms) -> TriggerShapes:
        slot = capture.slot
        function = function_of(capture.number).as_string(connection)
        others = {name for (name,) in connection.execute(OTHERS, [slot, function])}
        names = dict(connection.execute(NAMES, [slot]).fetchall())
        now = {table.oid: table.name for table in forms.tables.values()}
        shapes = {
            (relation, shape): TriggerColumns.of(columns)
            for relation, shape, columns in connection.execute(SHAPES, [slot])
        }
        return cls(
            forms,
            {**names, **{oid: now[oid] for oid in names.keys() & now}},
            shapes,
            frozenset(others),
        )

    @cached_property
    def tables(self) -> Mapping[int, CatalogTable]:
        """By table or partition, what is published, if it still is."""
        there = self.forms.tables
        return {oid: there[name] for oid, name in self.names.items() if name in there}

    def form(self, relation: int, shape: int) -> TableForm:
        """The form of the published columns. Partitions have the form of their root."""
        return self.forms.then(self._relation(relation, shape))

    def _relation(self, relation: int, shape: int) -> ServerRelation:
        columns, table = self.shapes[relation, shape].columns, self.tables.get(relation)
        name = self.names[relation]
        if table is None:
            schema, _, plain = name.partition(".")
            return ServerRelation(relation, schema, plain, "f", columns, frozenset())
        places = {each.name: i for i, each in enumerate(table.columns)}
        shown = table.sent_columns(columns)
        # A column that is dropped now was before those that were added since.
        order = sorted(
            enumerate(shown), key=lambda it: (places.get(it[1].name, it[0]), it[0])
        ) if relation != table.oid else [*enumerate(shown)]  # fmt: skip
        return ServerRelation(
            table.oid,
            table.schema,
            table.table,
            table.setting,
            tuple(each for _, each in order),
            frozenset(table.identity or ()),
        )
