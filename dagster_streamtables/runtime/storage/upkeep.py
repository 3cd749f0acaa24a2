"""What keeps a Delta table quick to read: few files, and none that nobody needs.

Every refresh adds a file or more, most of them tiny, and a reader opens each. So when 32 files are
small, they are put together: a refresh pays for that once in about thirty times, and a row is
carried over about once. Files do not grow beyond what a small change writes anew quickly.
Checkpoints of the log (every 20 commits, see `storage`) are the writers' own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from dagster_streamtables.runtime.delta.actions import info_of, metrics_of
from dagster_streamtables.runtime.delta.data_rows import alike
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.spark.settings import settings_for_now
from dagster_streamtables.runtime.storage import target
from dagster_streamtables.runtime.storage.target import FILE_SIZE, FILES, file_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY = 32
_SMALL = 2**16
"""Bytes below which a file is small in any table; in a large one it is below a 128th of it."""
_VACUUM = {
    # The length of time is ours to know; and the commits that it makes say what was deleted.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "true",
    # Folders are listed in so many tasks, however few they are; by default 10,000, two minutes.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}


def has_many_small_files(log: TableLog) -> bool:
    """So many that are small for a table of that size."""
    sizes = log.file_sizes
    if len(sizes) < _MANY:
        return False
    size = sum(sizes)
    small = min(file_bytes(size) // 2, max(_SMALL, size // (4 * FILES)))
    return sum(each < small for each in sizes) >= _MANY


def keep_files_small(log: TableLog) -> None:
    """Tell the merges of delta-rs how large files are to be, unless somebody else has told them."""
    wanted, told = file_bytes(sum(log.file_sizes)), log.settings.get(FILE_SIZE)
    if told == str(wanted) or told not in (None, *map(str, target.FILE_BYTES)):
        return
    try:
        log.to_write().alter.set_table_properties({FILE_SIZE: str(wanted)})
    except (DeltaError, OSError):
        return  # as below; or delta-rs does not write such tables


def compact(log: TableLog) -> None:
    """Put small files together; no row changes, and readers of changes see nothing.

    Not where delta-rs would put other rows into the new file than Spark reads in the old ones.
    """
    if not alike(log):
        return
    try:
        log.to_write().optimize.compact(target_size=file_bytes(sum(log.file_sizes)))
    except (DeltaError, OSError):
        return  # somebody else committed, or the disk is full; the next refresh tries again


def vacuum(spark: SparkSession, log: TableLog, *, hours: int, dry: bool) -> list[str]:
    """Delete files that went out of use longer ago than a number of hours.

    Spark does it, as delta-rs leaves the files of the change feed.

    Returns:
        For a dry run, the files that would be deleted, up to 1000.
    """
    command = f"VACUUM delta.{spark_name(log.location)} RETAIN {hours} HOURS"
    with settings_for_now(spark, _VACUUM):
        rows = spark.sql(f"{command} DRY RUN" if dry else command).collect()
    return [row["path"] for row in rows] if dry else []


def deleted_files(log: TableLog) -> int:
    """Files that the vacuum which made the newest version says it deleted."""
    for _, commit in log.commits(log.version - 1, log.version):
        return int(metrics_of(info_of(commit or ())).get("numDeletedFiles", 0))
    return 0
