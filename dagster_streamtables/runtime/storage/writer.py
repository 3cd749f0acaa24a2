"""The stored table: its rows replaced or changed, its frontier with them, in one commit.

Spark computes, the smaller writer commits: a MERGE in Spark costs more than a second whatever its
size, one in delta-rs some hundredths. So a change that is here as a table in this process is
committed by delta-rs where the stored table's protocol lets it, and every other one by Spark. Which
of the two it is, only this module asks. Both do the same to the table:

    write     the table is made of rows
    replace   rows are stored in place of everything
    change    of a bag: rows of weight n > 0 are stored n times more, of weight -n stored n times
              less; of a table with a key: 1 stores the row in place of the key's, -1 deletes that
    advance   the frontier moves, and no rows
"""

from __future__ import annotations

from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage import delta_rs_writer, spark_writer
from dagster_streamtables.runtime.storage.target import Rows, Target, Written


def write(target: Target, rows: Rows, inputs: Inputs) -> Written:
    """Make the table of its first rows."""
    if rows.local is not None:
        return delta_rs_writer.write(target, rows.local)
    return spark_writer.write(inputs.spark, target, rows.in_spark())


def replace(log: TableLog, target: Target, rows: Rows, inputs: Inputs) -> Written:
    """Store rows in place of everything."""
    if rows.local is not None and delta_rs_writer.can_write(log):
        return delta_rs_writer.replace(log, target, rows.local)
    return spark_writer.replace(inputs.spark, target, rows.in_spark())


def change(log: TableLog, target: Target, rows: Rows, inputs: Inputs) -> Written:
    """Store and delete the rows that a change counts in its weight column.

    Raises:
        NotStored: A row of a bag goes that is not stored.
    """
    if rows.local is not None and delta_rs_writer.can_write(log):
        return delta_rs_writer.change(log, target, rows.local)
    return spark_writer.change(inputs.relations, log, target, rows.in_spark())


def changes_cheaply(log: TableLog) -> bool:
    """Whether a small change of the table costs much less than to store all rows anew."""
    return delta_rs_writer.can_write(log)


def advance(log: TableLog, target: Target, inputs: Inputs) -> Written:
    """Commit a new frontier and no rows."""
    if delta_rs_writer.can_write(log):
        return delta_rs_writer.advance(log, target)
    return spark_writer.advance(inputs.spark, target)
