"""The stored table: its rows replaced or changed, its frontier with them, in one commit.

Spark computes, the smaller writer commits: a MERGE in Spark costs more than a second whatever its
size, one in delta-rs some hundredths. So a change that is here as a table in this process is
committed by delta-rs where the stored table's protocol lets it, and every other one by Spark. Both
writers do the same to the table:

    bag     rows of weight n > 0 are stored n times more, of weight -n stored n times less
    keyed   one row a key; 1 stores it in place of the key's row, -1 deletes the key's row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.state import State, application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    # delta-rs cannot leave deletion vectors as they are, and pyarrow cannot read under them.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True)
class Written:
    """What one commit did."""

    version: int
    inserted: int
    deleted: int
    writer: str


@dataclass(frozen=True)
class Target:
    """A stored table to be written, and what goes into the commit beside the rows."""

    location: str
    state: State
    key: tuple[str, ...] | None
    """The columns that identify a row; None for a bag."""

    @property
    def application(self) -> str:
        return application(self.state.table)


def replace_rows(spark: SparkSession, target: Target, rows: DataFrame) -> None:
    """Store `rows` in place of everything, creating the table if there is none."""
    writer = (
        _without_negative_zero(rows)
        .write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .option("userMetadata", target.state.to_json())
        .option("txnAppId", target.application)
        .option("txnVersion", target.state.sequence)
    )
    for name, value in PROPERTIES.items():
        writer = writer.option(name, value)
    writer.save(target.location)


def _without_negative_zero(rows: DataFrame) -> DataFrame:
    """-0.0 equals 0.0 to Spark but not to every writer, so a stored row must not hold it."""
    from pyspark.sql import functions as F

    floats = [name for name, type_ in rows.dtypes if type_ in ("double", "float")]
    if not floats:
        return rows
    plus_zero = {
        name: F.col(f"`{name}`") + F.lit(0.0).cast(dict(rows.dtypes)[name]) for name in floats
    }
    return rows.withColumns(plus_zero)
