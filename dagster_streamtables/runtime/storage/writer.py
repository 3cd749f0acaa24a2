"""Write the stored table: replace or change its rows together with its frontier, in one commit.

A MERGE in Spark takes more than a second whatever its size, one in delta-rs some hundredths. So
delta-rs commits a change in this process if it can write the table, and Spark every other one. Only
this module chooses. Both engines do the same:

    write     create the table with rows
    replace   replace all rows
    change    of a bag: a row of weight n > 0 gains n copies, a row of weight -n loses n copies;
              of a table with a key: 1 stores the row for its key, -1 deletes the key's row
    advance   move the frontier without rows
"""

from __future__ import annotations

from contextlib import suppress

from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.compute.spark_relations import OutputRows
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.data_files import OnlySpark, read_by_delta_rs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage import delta_rs_writer, spark_writer
from dagster_streamtables.runtime.storage.change_times import add_time, keep_times
from dagster_streamtables.runtime.storage.commit_target import (
    CommitResult,
    CommitTarget,
)


def write(target: CommitTarget, rows: OutputRows, inputs: Inputs) -> CommitResult:
    """Create the table with its first rows."""
    if target.changed_at is not None:
        rows = add_time(rows, target.changed_at)
    if rows.local is not None:
        return delta_rs_writer.write(target, rows.local)
    return spark_writer.write(inputs.spark, target, rows.in_spark())


def replace(log: TableLog, target: CommitTarget, rows: OutputRows, inputs: Inputs) -> CommitResult:
    """Replace all rows, and the columns."""
    if target.changed_at is not None:
        rows = keep_times(rows, target.changed_at, log, inputs.relations)
    # delta-rs keeps the order and case of the stored columns.
    local = rows.local
    if local is not None and delta_rs_writer.can_write(log) and not _renames(log, local):
        return delta_rs_writer.replace(log, target, local)
    return spark_writer.replace(inputs.spark, target, rows.in_spark())


def _renames(log: TableLog, rows: pa.Table) -> bool:
    """Whether rows have the columns of a table in another order, or spelled in another way."""
    stored, names = list(log.columns), rows.column_names
    same = {name.lower() for name in stored} == {name.lower() for name in names}
    return same and stored != names


def change(log: TableLog, target: CommitTarget, rows: OutputRows, inputs: Inputs) -> CommitResult:
    """Insert and delete rows by the weight column of a change.

    Raises:
        MissingRow: The change deletes a row of a bag that is not stored.
    """
    if rows.local is not None and delta_rs_writer.can_write(log):
        # delta-rs may be unable to read a file that the change touches.
        with suppress(OnlySpark), read_by_delta_rs():
            return delta_rs_writer.change(log, target, rows.local)
    return spark_writer.change(inputs.relations, log, target, rows.in_spark())


def changes_cheaply(log: TableLog) -> bool:
    """Whether a small change of the table costs much less than rewriting all rows."""
    return delta_rs_writer.can_write(log)


def advance(log: TableLog, target: CommitTarget, inputs: Inputs) -> CommitResult:
    """Commit a new frontier without rows."""
    if delta_rs_writer.can_write(log):
        return delta_rs_writer.advance(log, target)
    return spark_writer.advance(inputs.spark, target)
