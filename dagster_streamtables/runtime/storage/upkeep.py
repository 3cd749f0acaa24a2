"""Keep a Delta table fast to read: few files, and no unneeded ones.

Every refresh adds files, most of them tiny, and a reader opens each. So 32 small files are merged:
about one refresh in thirty pays for that, and each row is rewritten about once. Files stay small
enough to rewrite quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from dagster_streamtables.errors import ConflictingCommit, EnvironmentProblem
from dagster_streamtables.runtime.delta.actions import info_of, metrics_of
from dagster_streamtables.runtime.delta.data_files import OnlySpark, read_by_delta_rs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.spark.session import session_with
from dagster_streamtables.runtime.spark.settings import WRITE_SETTINGS
from dagster_streamtables.runtime.spark.spark_commits import require_safe_commits
from dagster_streamtables.runtime.storage.commit_target import (
    FILE_SIZE,
    FILES,
    file_bytes,
    is_sized_here,
    reason_for_spark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY = 32
_SMALL = 2**16
"""Bytes below which a file is small in any table; in a large one, below 1/128 of the table."""
_VACUUM = {
    # `hours` is already safe; and the commits of the vacuum record the number of deleted files.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "true",
    # Number of tasks that list folders; the default, 10,000, takes two minutes.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}


def has_many_small_files(log: TableLog) -> bool:
    """Whether `_MANY` files are small for a table of this size."""
    sizes = log.file_sizes
    if len(sizes) < _MANY:
        return False
    size = sum(sizes)
    small = min(file_bytes(size) // 2, max(_SMALL, size // (4 * FILES)))
    return sum(each < small for each in sizes) >= _MANY


def keep_files_small(log: TableLog) -> None:
    """Set the file size for the merges of delta-rs, unless the table has another one."""
    wanted, found = file_bytes(sum(log.file_sizes)), log.settings.get(FILE_SIZE)
    if found == str(wanted) or (found is not None and not is_sized_here(log.settings)):
        return
    try:
        log.to_write().alter.set_table_properties({FILE_SIZE: str(wanted)})
    except (DeltaError, OSError):
        return  # as below; or delta-rs cannot write the table


def compact(log: TableLog, session: Callable[[], SparkSession] | None = None) -> None:
    """Merge small files; no row changes, and readers of changes see nothing.

    The engine that writes the table does it, since only that surely reads the old files right.
    Without a `session`, a table that only Spark writes is left unchanged.
    """
    try:
        if not reason_for_spark(log):
            with read_by_delta_rs():
                log.to_write().optimize.compact(target_size=file_bytes(sum(log.file_sizes)))
        elif session is not None:
            _compact_by_spark(session(), log)
    except (DeltaError, OSError, OnlySpark, ConflictingCommit, EnvironmentProblem):
        return  # another process committed, or the disk is full; the next refresh retries


def _compact_by_spark(spark: SparkSession, log: TableLog) -> None:
    size = str(file_bytes(sum(log.file_sizes)))
    sizes = {f"spark.databricks.delta.optimize.{each}FileSize": size for each in ("max", "min")}
    require_safe_commits(spark, log.location)
    with translate_errors(), session_with(spark, {**WRITE_SETTINGS, **sizes}) as session:
        session.sql(f"OPTIMIZE delta.{spark_name(log.location)}").collect()


def vacuum(spark: SparkSession, log: TableLog, *, hours: int, dry: bool) -> list[str]:
    """Delete files that have been unused for more than `hours`; `dry` returns up to 1000 of them.

    By Spark, since delta-rs does not delete files of the Change Data Feed.

    Raises:
        EnvironmentProblem: Its commits could erase others.
    """
    if not dry:
        require_safe_commits(spark, log.location)
    command = f"VACUUM delta.{spark_name(log.location)} RETAIN {hours} HOURS"
    with session_with(spark, _VACUUM) as session:
        rows = session.sql(f"{command} DRY RUN" if dry else command).collect()
    return [row["path"] for row in rows] if dry else []


def count_deleted_files(log: TableLog) -> int:
    """Number of files deleted by the vacuum that committed the newest version."""
    metrics = metrics_of(info_of(log.actions_at(log.version) or ()))
    return int(metrics.get("numDeletedFiles", 0))
