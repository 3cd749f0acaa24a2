"""`LakeCopy`: the published rows of tables, each at a version that a slot holds."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import DamagedTable, HistoryUnavailable
from dagster_streamtables.replication.lake.publication import lost_table
from dagster_streamtables.replication.lake.shown_rows import ShownRows
from dagster_streamtables.runtime.delta.only_spark import text_explained
from dagster_streamtables.runtime.delta.stored_rows import streamed
from dagster_streamtables.runtime.errors.tables import LostHistory
from dagster_streamtables.runtime.errors.translate import explained

if TYPE_CHECKING:
    import pyarrow as pa

_Item = TypeVar("_Item")
_LOOK = 0.1
"""Seconds between two looks at whether the rows are still wanted."""


def read_ahead(items: Iterator[_Item], ahead: int = 2) -> Iterator[_Item]:
    """The same items, made by a thread that is a few of them ahead.

    It ends with the items, with an error, which is raised here, or when nobody wants more.
    """
    made: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(ahead)
    over = threading.Event()
    end = object()

    def put(item: Any, error: BaseException | None = None) -> bool:
        while not over.is_set():
            try:
                made.put((item, error), timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(end)
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        over.set()
        if threading.current_thread() is not thread:
            thread.join()


_BATCH = 65_536


@dataclass(frozen=True)
class LakeCopy:
    """See `Copy`."""

    slot: str
    tables: Mapping[str, ShownRows]

    def position(self, table: str) -> int:
        return self.tables[table].log.version

    def rows(self, table: str) -> pa.RecordBatchReader:
        import pyarrow as pa

        schema = self.tables[table].shown.published.schema
        return pa.RecordBatchReader.from_batches(schema, read_ahead(self._batches(table, schema)))

    def _batches(self, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            LostSlot: A file of that version is gone.
        """
        try:
            with explained():
                for rows in _rows(self.tables[table]):
                    yield from rows.cast(schema).to_batches(_BATCH)
        except (LostHistory, DamagedTable, HistoryUnavailable) as error:
            raise lost_table(self.slot, table, str(error)) from error


def _rows(copied: ShownRows) -> Iterator[pa.Table]:
    """The rows with all their copies, by delta-rs where it decides as Spark does."""
    columns = copied.shown.columns
    here = None if copied.shown.rule.copy else streamed(copied.log, columns)
    if here is not None:
        with text_explained(copied.log.location):
            yield from here
        return
    for part in copied.snapshot():
        copies = np.repeat(np.arange(part.num_rows), part.column(WEIGHT).to_numpy())
        yield part.select(list(columns)).take(copies)
