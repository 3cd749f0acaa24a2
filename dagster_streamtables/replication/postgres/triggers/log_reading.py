"""`LogRead`: the changes after some positions, from the log of the triggers.

The server evaluates row filters, as it does when it decodes its log: the text of a row becomes a
row with the types of its columns, and the filter is a condition on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from psycopg import sql

from dagster_streamtables.replication.model.replication_model import Batch, Operation
from dagster_streamtables.replication.postgres.publication_catalog import (
    CatalogColumn,
    CatalogTable,
)
from dagster_streamtables.replication.postgres.triggers.change_texts import pieces_of
from dagster_streamtables.replication.postgres.triggers.snapshot_windows import (
    SnapshotWindow,
    WindowTransaction,
    choose_transactions,
    require_whole,
)
from dagster_streamtables.replication.postgres.triggers.trigger_log import TriggerShapes, rows_of
from dagster_streamtables.replication.postgres.wal_reading import (
    Piece,
    begin_columns,
    changes_of,
    spare_memory,
)
from dagster_streamtables.runtime.delta.arrow import np

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.triggers.capture_objects import CaptureState


@dataclass
class LogRead:
    connection: Connection
    capture: CaptureState
    shapes: TriggerShapes
    after: Mapping[str, int]
    max_rows: int
    transactions: list[WindowTransaction] = field(default_factory=lambda: [])
    """In order."""
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    cut: int | None = None
    """The first transaction that belongs to the next batch, since it has other columns."""
    _changes: int = 0

    @property
    def is_full(self) -> bool:
        return self._changes >= self.max_rows

    def choose(self, before: SnapshotWindow, window: SnapshotWindow, *, is_new: bool) -> None:
        """Add transactions of a window, until there are enough changes."""
        if not is_new:
            require_whole(self.connection, self.capture, before, window)
        left, wanted = min(self.after.values()), self.max_rows - self._changes
        for each in choose_transactions(
            self.connection, self.capture, before, window, left, wanted
        ):
            if self.is_full:
                return
            self.transactions.append(each)
            self._changes += each.changes

    def load(self) -> None:
        if not self.transactions:
            return
        positions = [each.position for each in self.transactions]
        shown = filter_condition(self.connection, self.shapes)
        rows = rows_of(self.connection, self.capture, self.transactions, shown)
        with closing(rows) as parts:
            for part in parts:
                for name, piece in pieces_of(part, positions, self.shapes, self.after):
                    there = self.pieces.setdefault(name, [])
                    self.cut = begin_columns(there, piece.form, piece.first, self.cut)
                    if self.cut is None or piece.first < self.cut:
                        there.append(piece)
                spare_memory(self.pieces)
                if self.cut is not None:
                    return

    def batch(self, end: int, *, complete: bool) -> Batch:
        """
        Args:
            end: The position up to which all was read, if it was not stopped.
            complete: Whether nothing follows it.
        """
        positions = [each.position for each in self.transactions]
        if self.cut is not None:
            positions, end = positions[: self.cut], positions[self.cut] - 1
        elif self.is_full:
            end = positions[-1]
        return Batch(
            tables=changes_of(self.pieces, self.cut, np.array(positions, np.int64)),
            end={name: max(end, position) for name, position in self.after.items()},
            complete=complete and self.cut is None and not self.is_full,
        )


NAMES = """
    SELECT attnum, attname FROM pg_attribute
    WHERE attrelid = %s::oid AND attnum > 0 AND NOT attisdropped
"""
OPS = {"I": Operation.INSERT, "u": Operation.UPDATE, "U": Operation.UPDATE, "D": Operation.DELETE}


def filter_condition(connection: Connection, shapes: TriggerShapes) -> sql.Composable:
    """A condition over a log, called l. The connection has the types that it names."""
    cases: list[sql.Composed] = []
    for (relation, shape), found in shapes.shapes.items():
        table = shapes.tables.get(relation)
        if table is None or not any(map(table.row_filter, OPS.values())):
            continue
        # Filters have the present names of columns.
        names = dict(connection.execute(NAMES, [relation]).fetchall())
        columns = [
            replace(each, name=names.get(number, f"{each.name} {number}"))
            for each, number in zip(found.columns, found.numbers, strict=True)
        ]
        condition = _row_condition(connection, len(cases), columns, table)
        case = sql.SQL("WHEN l.relation = {} AND l.shape = {} THEN {}")
        cases.append(case.format(sql.Literal(relation), sql.Literal(shape), condition))
    if not cases:
        return sql.SQL("true")
    return sql.SQL("CASE {} ELSE true END").format(sql.SQL(" ").join(cases))


def _row_condition(
    connection: Connection, kind: int, columns: list[CatalogColumn], table: CatalogTable
) -> sql.Composed:
    # A type that goes with the connection. Types that are dropped are of no filter.
    texts = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(each.name), _type(connection, each))
        for each in columns
    )
    name = sql.Identifier("pg_temp", f"shape_{kind}")
    connection.execute(sql.SQL("CREATE TYPE {} AS ({})").format(name, texts))
    cases = [
        sql.SQL("WHEN {} THEN (SELECT ({}) FROM (SELECT (l.changed::{}).*) AS r)").format(
            sql.Literal(op),
            sql.SQL(table.row_filter(operation) or "true"),  # type: ignore[arg-type]
            name,
        )
        for op, operation in OPS.items()
    ]
    return sql.SQL("coalesce(CASE l.op {} ELSE true END, false)").format(sql.SQL(" ").join(cases))


def _type(connection: Connection, column: CatalogColumn) -> sql.SQL:
    row = connection.execute(
        "SELECT format_type(oid, %s) FROM pg_type WHERE oid = %s::oid",
        [column.modifier, column.type],
    ).fetchone()
    return sql.SQL(row[0] if row else "text")
