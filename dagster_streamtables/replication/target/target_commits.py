"""`SparkCommit`: one commit to a target by Spark, on the version that was read or not at all.

Spark's statements work on the newest version. So each of them also compares the files of that
version, and the numbers of rows in them, with those of the version that was read, and fails if they
differ. It does so in its own transaction, in which Delta refuses the commits of others until it
ends.

The rows are a relation for one MERGE (`OpShape`): op, the operation; k…, the row to find; v…, its
values; u…, whether the stored value stays. Each column of the target is written with its alias, so
none can collide with these.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import FailedQuery, RejectedQuery, TargetProblem
from dagster_streamtables.replication.target.spark_rows import stage_rows
from dagster_streamtables.replication.target.target_columns import lengths_in
from dagster_streamtables.replication.target.target_table import (
    Provenance,
    TargetTable,
    log_of,
    row_refusal,
)
from dagster_streamtables.runtime.delta.actions import REPLICATION
from dagster_streamtables.runtime.delta.arrow import np, pa, plain_schema
from dagster_streamtables.runtime.delta.data_files import pads
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import spark_name, spark_type
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import meaning_of
from dagster_streamtables.runtime.errors.table_errors import lost_race
from dagster_streamtables.runtime.spark.session import VIEWS
from dagster_streamtables.runtime.spark.spark_commits import Commit, CommitMark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Op(IntEnum):
    INSERT = 0
    """A new row. It is not looked for, so a key can leave one row and come with another."""
    UPDATE = 1
    DELETE = 2
    AGAIN = 3
    """A row that was deleted along with equal ones, and stays: in all columns of the target."""
    STORE = 4
    """A row to update, or to insert if there is none."""


@dataclass(frozen=True)
class OpShape:
    """The columns of the operations on one target."""

    stored: pa.Schema
    """All columns of the target."""
    match: Sequence[str]
    """The columns that identify a row."""
    values: Sequence[str]
    """The columns that are written."""
    new: Sequence[str]
    """The values that a new row has."""
    kept: frozenset[str] = frozenset()
    """The values that may stay as stored."""

    @property
    def schema(self) -> pa.Schema:
        plain = plain_schema(self.stored)
        return pa.schema(
            [
                ("op", pa.int8()),
                *((f"k{i}", plain.field(name).type) for i, name in enumerate(self.match)),
                *((f"v{i}", plain.field(name).type) for i, name in enumerate(self.values)),
                *((f"u{i}", pa.bool_()) for i, name in enumerate(self.values) if name in self.kept),
            ]
        )

    def new_value(self, index: int, name: Callable[[str], str]) -> str:
        """What an update assigns to a column of `values`, whose name is written by a function."""
        if self.values[index] not in self.kept:
            return f"s.v{index}"
        return f"CASE WHEN s.u{index} THEN t.{name(self.values[index])} ELSE s.v{index} END"

    def rows(
        self,
        op: Op,
        *,
        match: pa.Table | None = None,
        values: pa.Table | None = None,
        kept: Mapping[str, np.ndarray] | None = None,
    ) -> pa.Table:
        """Rows of the relation, from columns of the target."""
        found: dict[str, Any] = {}
        for letter, names, rows in (("k", self.match, match), ("v", self.values, values)):
            for i, name in enumerate(names):
                if rows is not None and name in rows.column_names:
                    found[f"{letter}{i}"] = rows.column(name)
        for name, stays in (kept or {}).items():
            found[f"u{list(self.values).index(name)}"] = pa.array(stays)
        count = len(next(iter(found.values()))) if found else 0
        found["op"] = pa.array([int(op)] * count, pa.int8())
        columns = [
            found[field.name].cast(field.type)
            if field.name in found
            else pa.nulls(count, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


_MOVED = "__st another commit came first"
_NOT_FOUND = "__st a stored row is not found"
_REFUSED = ("DELTA_VIOLATE_CONSTRAINT", "DELTA_NOT_NULL_CONSTRAINT", "DELTA_EXCEED_CHAR_VARCHAR")
_FILE_ROWS = 1_000_000


@dataclass(frozen=True)
class SparkCommit:
    """One commit to a target that is at a version."""

    there: TargetTable
    made: Provenance
    """What it says of itself."""

    @property
    def spark(self) -> SparkSession:
        assert self.there.spark is not None
        return self.there.spark

    @property
    def log(self) -> TableLog:
        return self.there.log

    def write(self, parts: Iterator[pa.Table], shape: OpShape, kinds: Sequence[Op]) -> None:
        """Insert, update and delete at once.

        Args:
            parts: Operations, in the columns of the shape.
            kinds: Those that may be among them. Without any, all are rows that replace the stored
                ones.
        """
        with self._view_of(shape.schema, parts) as view:
            if kinds:
                clauses = _clauses(shape, kinds, self.log)
                self._merge(view, _match_condition(shape, self.log), clauses)
            else:
                self._overwrite(view, shape)

    def _overwrite(self, view: str, shape: OpShape) -> None:
        values = enumerate(shape.values)
        listed = ", ".join(f"o.v{i} AS {spark_name(name)}" for i, name in values)
        none = ", ".join(["NULL"] * len(shape.values))
        rows = self.spark.sql(
            f"SELECT {listed} FROM {view} AS o CROSS JOIN ({self._pin}) AS p WHERE p.same "
            # Without rows, nothing above would look at the version.
            f"UNION ALL SELECT {none} FROM ({self._pin}) WHERE NOT same"
        )
        self._commit.overwrite(rows, {"partitionOverwriteMode": "static"})

    def truncate(self) -> None:
        """Delete all rows, recognizably for readers of the target."""
        with self._explain_errors():
            self._commit.run(f"DELETE FROM {self._commit.table}")

    def advance(self) -> None:
        """Commit a position without rows."""
        with self._explain_errors():
            self._commit.advance()

    def alter(self, change: str) -> None:
        """Run an ALTER TABLE, whose end is given."""
        with self._explain_errors():
            self._commit.run(f"ALTER TABLE {self._commit.table} {change}")

    def add_columns(self, schema: pa.Schema) -> None:
        """Add columns, which are NULL in the existing rows."""
        from pyspark.sql.pandas.types import from_arrow_type

        types = (from_arrow_type(each, prefer_timestamp_ntz=True) for each in schema.types)
        listed = (
            f"{spark_name(name)} {spark_type(type_.jsonValue())}"
            for name, type_ in zip(schema.names, types, strict=True)
        )
        self.alter(f"ADD COLUMNS ({', '.join(listed)})")

    def add_with_values(self, row: pa.Table) -> None:
        """Add columns, with the values of one row in all existing rows."""
        with self._view_of(row.schema, iter([row])) as view:
            values = ", ".join(f"{spark_name(n)} = s.{spark_name(n)}" for n in row.column_names)
            self._merge(view, "true", [f"WHEN MATCHED THEN UPDATE SET {values}"], evolves=True)

    def _merge(
        self, view: str, condition: str, clauses: Iterable[str], *, evolves: bool = False
    ) -> None:
        rows = f"SELECT o.* FROM {view} AS o CROSS JOIN ({self._pin}) AS p WHERE p.same"
        # Spark loses the columns that it pads from the condition of a MERGE.
        unpadded = {"spark.sql.readSideCharPadding": "false"} if pads(self.log) else {}
        self._commit.merge(rows, condition, clauses, evolves=evolves, settings=unpadded)

    @cached_property
    def _commit(self) -> Commit:
        told = json.dumps({REPLICATION: json.dumps(asdict(self.made))})
        # Rows of the position that the target has already, as of a copy that is made again.
        again = self.made.position == self.made.after
        number = None if again else self.made.position
        mark = CommitMark(self.there.target.application, number, told)
        return Commit(self.spark, self.log.location, mark, _FILE_ROWS)

    @property
    def _pin(self) -> str:
        """One row, ``same``, or a failure."""
        versions = ("", f" VERSION AS OF {self.log.version}")
        now, then = (files_of(self._commit.table + at, self.log.columns) for at in versions)
        return (
            "SELECT CASE WHEN a.files = b.files AND a.digest <=> b.digest THEN true "
            f"ELSE raise_error('{_MOVED}') END AS same FROM ({now}) AS a CROSS JOIN ({then}) AS b"
        )

    @contextmanager
    def _view_of(self, schema: pa.Schema, parts: Iterator[pa.Table]) -> Iterator[str]:
        """A view of rows that are sent to Spark. Errors are explained once they are there."""
        staged = stage_rows(self.spark, self.log, self.made.replication, schema, parts)
        with staged as rows, self._explain_errors():
            view = f"{VIEWS}{uuid.uuid4().hex}"
            rows.createOrReplaceTempView(view)
            try:
                yield view
            finally:
                self.spark.catalog.dropTempView(view)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """
        Raises:
            ConflictingCommit: Another commit came first.
            TargetProblem: The target refuses a row, or Spark does not write the target.
        """
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            said = str(error)
            if _MOVED in said or self._has_new_version():
                raise lost_race(first_line(said)) from error
            if any(word in said for word in _REFUSED):
                raise row_refusal(self.made, self.log.location, said) from error
            if isinstance(meaning_of(error), FailedQuery | RejectedQuery):
                raise self._write_problem(said) from error
            raise

    def _has_new_version(self) -> bool:
        log = log_of(self.there.target)
        return log is None or log.version != self.log.version or log.id != self.log.id

    def _write_problem(self, said: str) -> TargetProblem:
        return TargetProblem(
            f'Spark does not write the target of "{self.made.table}"',
            where=self.log.location,
            why=first_line(said),
            fix="change what it says about the target, or choose another target; nothing was "
            "applied",
        )


def files_of(table: str, columns: Collection[str]) -> str:
    """The number of files of a version, and a digest of their names and of the rows in each."""
    # If a table has such a column, Spark puts more underscores before its own name.
    taken, file = {name.lower() for name in columns}, "_metadata"
    while file in taken:
        file = f"_{file}"
    each = f"SELECT {file}.file_name AS f, COUNT(*) AS n FROM {table} GROUP BY 1"
    return f"SELECT COUNT(*) AS files, bit_xor(xxhash64(f, n)) AS digest FROM ({each})"


def _match_condition(shape: OpShape, log: TableLog) -> str:
    lengths = lengths_in(log)
    stored = (
        f"rpad(t.{spark_name(name)}, {lengths[name].characters}, ' ')"
        if name in lengths and lengths[name].is_exact
        else f"t.{spark_name(name)}"
        for name in shape.match
    )
    same = (f"{each} <=> s.k{i}" for i, each in enumerate(stored))
    return " AND ".join([f"s.op IN ({Op.UPDATE}, {Op.DELETE}, {Op.STORE})", *same])


def _clauses(shape: OpShape, kinds: Sequence[Op], log: TableLog) -> Iterator[str]:
    if {Op.UPDATE, Op.STORE} & {*kinds}:
        values = ", ".join(
            f"t.{spark_name(name)} = {shape.new_value(i, spark_name)}"
            for i, name in enumerate(shape.values)
            if name in shape.new
        )
        yield f"WHEN MATCHED AND s.op IN ({Op.UPDATE}, {Op.STORE}) THEN UPDATE SET {values}"
    if Op.DELETE in kinds:
        yield f"WHEN MATCHED AND s.op = {Op.DELETE} THEN DELETE"
    if {Op.INSERT, Op.STORE} & {*kinds}:
        yield (
            f"WHEN NOT MATCHED AND s.op IN ({Op.INSERT}, {Op.STORE}) "
            f"THEN {_insert(shape, shape.new)}"
        )
    if Op.AGAIN in kinds:
        yield f"WHEN NOT MATCHED AND s.op = {Op.AGAIN} THEN {_insert(shape, shape.values)}"
    if {Op.UPDATE, Op.DELETE} & {*kinds}:
        name = shape.new[0]
        never = f"CAST(raise_error('{_NOT_FOUND}') AS {log.columns[name]})"
        yield f"WHEN NOT MATCHED THEN INSERT ({spark_name(name)}) VALUES ({never})"


def _insert(shape: OpShape, names: Sequence[str]) -> str:
    listed = ", ".join(map(spark_name, names))
    values = ", ".join(f"s.v{list(shape.values).index(name)}" for name in names)
    return f"INSERT ({listed}) VALUES ({values})"
