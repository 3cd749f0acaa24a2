"""`PublicationRows`: the published rows of a table, at a version or between two versions.

Spark evaluates the row filters. `LakeCopy` has the published rows of several tables, each at a
version that a slot holds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from dagster_streamtables.changes.relation.relation import declare_relation, relation_of
from dagster_streamtables.changes.relation.relation_reading import (
    RelationRows,
    Times,
    rows_of_table,
)
from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import (
    DamagedTable,
    HistoryUnavailable,
    InvalidDefinition,
    PublisherProblem,
)
from dagster_streamtables.replication.lake.publication import missing_changes_error
from dagster_streamtables.replication.lake.publication_rules import NESTED, PublicationView
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.netting import net_rows
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.delta.arrow import np, pa
from dagster_streamtables.runtime.delta.data_files import translate_text_errors
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_lookup import stream_rows
from dagster_streamtables.runtime.delta.table_schema import has_variants, spark_name
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory
from dagster_streamtables.runtime.spark.connect import arrow_rows

_SESSION = "_replications"
_ROW = "__published_row"


def flag(number: int) -> str:
    """The column with the answers of a filter, by its number in the rule."""
    return f"__published_{number}"


def flags(filters: Sequence[str]) -> list[str]:
    """Filters as columns of a SELECT. One that is NULL does not choose the row."""
    return [f"COALESCE((\n{where}\n), FALSE) AS {flag(i)}" for i, where in enumerate(filters)]


def with_flags(access: Access, shown: PublicationView, parts: Sequence[pa.Table]) -> list[pa.Table]:
    """The changes of some commits with the flags of their rows, by one statement for all of them.

    Args:
        parts: The columns that are read, those that filters use, and the weight.

    Returns:
        The columns that are read, the flags and the weight; without rows that changed only in
        hidden columns.
    """
    filters, columns = shown.rule.all_filters, [*shown.read, WEIGHT]
    rows = pa.concat_tables(parts)
    found = _evaluate_filters(access, rows.select(list(shown.looked_at)), rows.num_rows, filters)
    chosen = rows.select(columns)
    for i, values in enumerate(found):
        chosen = chosen.append_column(flag(i), values)
    cut, start = [], 0
    for part in parts:
        cut.append(net_rows(chosen.slice(start, part.num_rows)))
        start += part.num_rows
    return cut


def _evaluate_filters(
    access: Access, rows: pa.Table, count: int, filters: Sequence[str]
) -> list[pa.ChunkedArray]:
    """Each filter's answer for each row."""
    # A filter may look at no column, and a table without columns has no rows.
    numbered = pa.table({_ROW: pa.array(range(count), pa.int64())})
    for name in rows.column_names:
        numbered = numbered.append_column(name, rows.column(name))
    inputs = Inputs(session=lambda: access.session(_SESSION, "UTC"), stored=lambda _: None)
    with translate_errors(), closing(inputs):
        handed = inputs.relations.to_spark(numbered)
        answers = arrow_rows(handed.selectExpr(_ROW, *flags(filters)))
    answers = answers.sort_by(_ROW)
    return [answers.column(flag(i)) for i in range(len(filters))]


_ANY = "1970-01-01T00:00:00+00:00"
"""The current time, which no filter uses."""
_NEVER = Times(_ANY, _ANY)
_MAP = "map<"
_WHY_UNFOUND = (
    "the engines that write a target do not compare these, so no row would be found again"
)


@dataclass(frozen=True)
class PublicationRows:
    """The rows of one table.

    Without a filter they are read without Spark, if they are few or were only added. Spark
    evaluates filters, with equal answers over the table and over rows that were read from it, which
    takes one statement for many commits; except for columns that their types alone do not
    describe: Spark pads a CHAR.
    """

    access: Access
    shown: PublicationView
    log: TableLog
    """At the version whose columns are read."""

    def change(self, before: TableLog) -> Iterator[pa.Table]:
        """The changes since an earlier version: the columns that are read, the columns of `flags`
        (or, if they are decided `later`, those that filters use), and the weight."""
        if self.later:
            more = [name for name in self.shown.looked_at if name not in self.shown.read]
            rows = self._rows([*self.shown.read, *more])
        else:
            rows = self._rows(self.shown.read, selected=flags(self.shown.rule.all_filters))
        name = self.shown.rule.table
        yield from rows.change({name: before}, {name: self.log}, _NEVER)

    def snapshot(self) -> Iterator[pa.Table]:
        """The rows of the copy with all their copies, by delta-rs if it reads them as Spark
        does."""
        rule, columns = self.shown.rule, self.shown.columns
        here = None if rule.copy else stream_rows(self.log, columns)
        if here is not None:
            with translate_text_errors(self.log.location):
                yield from here
            return
        rows = self._rows(columns, where=rule.copy)
        for part in rows.snapshot({rule.table: self.log}, _ANY):
            copies = np.repeat(np.arange(part.num_rows), part.column(WEIGHT).to_numpy())
            yield part.select(list(columns)).take(copies)

    def require_readable(self) -> None:
        """Raise `PublisherProblem` if the values of a column cannot be compared."""
        self._rows(self.shown.read)

    @cached_property
    def later(self) -> bool:
        """Whether filters are evaluated once the rows of a batch were read."""
        types = [self.log.columns[name] for name in self.shown.looked_at]
        odd = any(name in self.log.encodings for name in self.shown.looked_at)
        return not odd and not any(type_.startswith(NESTED) for type_ in types)

    def _rows(
        self, columns: Sequence[str], *, selected: Sequence[str] = (), where: str = ""
    ) -> RelationRows:
        """Raise `PublisherProblem` if the values of a column cannot be compared."""
        name = self.shown.rule.table
        try:
            if selected or where:
                rows = self._select_rows(columns, selected, where)
            else:
                rows = rows_of_table(self.access, name, self.log, columns)
            rows.schema  # noqa: B018, its types are looked at
        except InvalidDefinition as error:
            raise self._unpublishable(error.what, error.why) from error
        for column in columns:
            type_ = self.log.columns[column].lower()
            if _MAP in type_ or has_variants([type_]):
                kind = "MAP" if _MAP in type_ else "VARIANT"
                raise self._unpublishable(f'"{column}" holds a {kind}', _WHY_UNFOUND)
        return rows

    def _select_rows(
        self, columns: Sequence[str], selected: Sequence[str], where: str
    ) -> RelationRows:
        name = self.shown.rule.table
        source = ".".join(map(spark_name, name.split(".")))
        chosen = f"\nWHERE (\n{where}\n)" if where else ""
        listed = ", ".join([*map(spark_name, columns), *selected])
        query = f"SELECT {listed}\nFROM {source}{chosen}"
        declaration = declare_relation(
            query, dialect="spark", session_timezone="UTC", views=(), recompute=False
        )
        return relation_of(self.access, declaration, name, {name: self.log})

    def _unpublishable(self, what: str, why: str) -> PublisherProblem:
        return PublisherProblem(
            f'the table "{self.shown.rule.table}" cannot be published: {what}',
            where=self.log.location,
            why=why,
            fix="publish some of its columns only, without that one",
        )


_Item = TypeVar("_Item")
_AHEAD = 3


def read_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """The same items, computed by a thread that is a few of them ahead."""
    end: Any = object()
    worker = ThreadPoolExecutor(1)
    thread = worker.submit(threading.get_ident).result()
    try:
        waiting = deque(worker.submit(next, items, end) for _ in range(_AHEAD))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(worker.submit(next, items, end))
            yield item
    finally:
        # The thread itself may collect an unfinished iterator.
        worker.shutdown(wait=threading.get_ident() != thread, cancel_futures=True)


_BATCH = 65_536


@dataclass(frozen=True)
class LakeCopy:
    """See `CopySource`."""

    slot: str
    tables: Mapping[str, PublicationRows]

    def position(self, table: str) -> int:
        return self.tables[table].log.version

    def rows(self, table: str) -> pa.RecordBatchReader:
        schema = self.tables[table].shown.published.schema
        return pa.RecordBatchReader.from_batches(schema, read_ahead(self._batches(table, schema)))

    def _batches(self, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Raise `LostSlot` if a file of that version was deleted."""
        try:
            with translate_errors():
                for rows in self.tables[table].snapshot():
                    yield from rows.cast(schema).to_batches(_BATCH)
        except (LostHistory, DamagedTable, HistoryUnavailable) as error:
            raise missing_changes_error(self.slot, table, str(error)) from error
