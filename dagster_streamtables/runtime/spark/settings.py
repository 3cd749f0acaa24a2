"""The Spark settings of the sessions of this package, and the required ones of a given session.

Those of a local Spark suit one machine and small changes: a statement's fixed cost depends on the
number of its tasks, so there are two shuffle partitions and no adaptive planning. A given session
and a cluster keep theirs.

Every session must read SQL as Spark does by default (`READING`), and as the compiler does: other
settings can turn a text in double quotes into an identifier, or ``'it''s'`` into two texts. A full
refresh would then compute one query, and the change another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.environment import home, memory_bytes, variable
from dagster_streamtables.runtime.spark.jars import jars_setting
from dagster_streamtables.runtime.spark.parquet_scan import MOST_FILES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ZONE = "spark.sql.session.timeZone"
_UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT")

READING: Mapping[str, str] = {
    "spark.sql.analyzer.lowerEmptyGroupingSetToGlobalAggregate.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.allowStarWithSingleTableIdentifierInCount": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Spark's defaults of the settings that change the meaning of a text."""
OLD_VERSIONS = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Whether Delta refuses a version that is older than the table keeps deleted files, a week by
default, though a source without newer commits still has all its files."""
_NOT_BY_DEFAULT = {"spark.sql.variable.substitute": "false", OLD_VERSIONS: "false"}
_LOCAL_ROWS = {
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": str(1 << 30),
    "spark.sql.session.localRelationCacheThreshold": str(1 << 30),
    "spark.sql.session.localRelationChunkSizeBytes": str(16 << 20),
    "spark.sql.session.localRelationChunkSizeRows": "10000",
    "spark.sql.session.localRelationSizeLimit": str(3 << 30),
}
"""What a client of Spark 4.2 asks its server before it sends local rows, in bytes and rows. A
server of 4.0 does not know the names, and one of 4.1 answers `3221225472b`. Up to the threshold,
rows are sent in the statement; above it, in a message that an older server does not know."""


def read_as_usual(session: SparkSession) -> None:
    """Set the settings that differ, on our own session."""
    has = session.conf.getAll
    for name, value in {**READING, **_NOT_BY_DEFAULT}.items():
        if has.get(name, READING.get(name)) != value:
            session.conf.set(name, value)


def fit_older_server(session: SparkSession) -> None:
    """Let a client send rows to a Spark Connect server of an older version."""
    if _minor(session.version) < _minor(metadata.version("pyspark")):
        for name, value in _LOCAL_ROWS.items():
            session.conf.set(name, value)


def _minor(version: str) -> tuple[int, ...]:
    """The first two numbers, such as 4 and 2 of 4.2.0."""
    return tuple(int(part) for part in version.split(".")[:2])


def require_fitting(session: SparkSession, zone: str | None) -> None:
    """Check a given session, which is not changed, since its owner may use it concurrently.

    Raises:
        EnvironmentProblem: It reads SQL in another way, or has another time zone than the query.
    """
    own = session.conf.get(ZONE)
    if zone is not None and own != zone and not {own, zone} <= set(_UTC):
        raise EnvironmentProblem(
            f"the given Spark session has the time zone {own}, and the query needs {zone}",
            why="days and hours begin at other times there, and a refresh does not change your "
            "session",
            fix=f"set {ZONE} to {zone} on it, give the stream table session_timezone={own!r}, or "
            "pass an address instead of the session",
        )
    has = session.conf.getAll
    for name, value in READING.items():
        if has.get(name, value) != value:
            raise EnvironmentProblem(
                f"the given Spark session has {name} set to {has[name]}",
                why="a query is read as Spark reads it by default, and its change would be that "
                "of another query",
                fix=f"set {name} to {value} on it, or pass an address instead of the session",
            )


COMMIT_SETTINGS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)
"""A MERGE has no options, and takes its transaction and its metadata from these."""

WRITE_SETTINGS: Mapping[str, str] = {
    # As delta-rs reads them: see `data_files`. Only Spark reads INT96 and the old calendar.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""How every data file of a stream table is written, in any session."""

_RELIED_ON = (
    *READING,
    *WRITE_SETTINGS,
    *log_store.SETTINGS,
    OLD_VERSIONS,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.session.timeZone",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.variable.substitute",
    "spark.databricks.delta.merge.materializeSource",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
)
"""Without these a refresh would fail or be wrong; the others make it fast."""


CONNECT_SETTINGS: Mapping[str, str] = {
    # By default, a session keeps its last 16 plans with all their local rows: a few tables with
    # changes of 100,000 rows filled a heap of 2 GB.
    "spark.connect.session.planCache.enabled": "false",
    "spark.connect.grpc.maxInboundMessageSize": str(512 * 1024 * 1024),
    # A session keeps the views of source versions, so it should live as long as the server. If it
    # ends before, its name should become free.
    "spark.connect.session.manager.defaultSessionTimeout": "24h",
    "spark.connect.session.manager.closedSessionsTombstonesSize": "0",
}
"""The settings of any Spark Connect server."""


def spark_settings(master: str = "local") -> dict[str, str]:
    """Spark confs of a driver with this master, without the JARs."""
    return {
        **(_one_machine() if master.startswith("local") else {}),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        **READING,
        **WRITE_SETTINGS,
        **log_store.SETTINGS,
        "spark.databricks.delta.snapshotPartitions": "1",
        # A recursion on the smaller side of a join may run for longer than the default 5 minutes.
        "spark.sql.broadcastTimeout": "3600",
        # The broadcast side of a join should be small: the default, 8 GB, exceeds the memory.
        "spark.sql.maxBroadcastTableSize": f"{_memory_mb() // 4}m",
        # Above this number of files, Spark lists them in a job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(MOST_FILES),
        # A missing file must fail the refresh.
        "spark.sql.files.ignoreMissingFiles": "false",
        # Text between quotes is data: `${env:HOME}` must not be replaced.
        "spark.sql.variable.substitute": "false",
        # Reading finds out whether files are missing.
        OLD_VERSIONS: "false",
        # A source that one MERGE reads twice must have the same rows both times.
        "spark.databricks.delta.merge.materializeSource": "all",
        # Otherwise Delta skips the next commit of the session, by the same transaction number.
        "spark.databricks.delta.write.txnVersion.autoReset.enabled": "true",
        # Number of logs that Delta caches; 10,000 by default. Each takes 2 MB for any small table,
        # and 4 MB with twenty columns. With 170 per GB, a JVM whose young generation is a third of
        # the heap did nothing but collect garbage.
        "spark.databricks.delta.delta.log.cacheSize": str(_memory_mb() // 10),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(home() / "warehouse"),
        "spark.driver.memory": driver_memory(),
    }


def _one_machine() -> dict[str, str]:
    """The confs of a Spark whose driver and executors are one process."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        # Every hash table begins with a page, by default 64 MB of a heap of 2 GB: a dozen small
        # joins caused a garbage collection.
        "spark.buffer.pageSize": "2m",
        # Number of tasks in which VACUUM lists folders. The default is 10,000: 17 s for a table of
        # four files, which two tasks list in 0.8 s.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(os.cpu_count() or 2),
    }


def delta_settings() -> dict[str, str]:
    """The confs that a classic session needs to refresh stream tables.

    For a session that is built elsewhere, as by `LazyPySparkResource`: Delta's JARs, the log store
    that commits safely to S3, and what refreshes rely on. Its owner chooses memory and partitions.

    Raises:
        EnvironmentProblem: There is no Java, or Delta's JARs cannot be downloaded.
    """
    return {"spark.jars": jars_setting(), **_session_settings()}


def _session_settings() -> dict[str, str]:
    settings = spark_settings()
    return {name: settings[name] for name in _RELIED_ON}


def connect_settings() -> dict[str, str]:
    """The confs of a Spark Connect server that somebody else starts, as by ``spark-submit``.

    Raises:
        EnvironmentProblem: As for `delta_settings`.
    """
    return {"spark.jars": jars_setting(), **server_settings()}


def server_settings() -> dict[str, str]:
    """Those of `connect_settings` but for the JARs, which are not looked for."""
    return {
        **_session_settings(),
        **CONNECT_SETTINGS,
        "spark.databricks.delta.snapshotPartitions": "1",
    }


@contextmanager
def settings_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set confs of a session, which may be the user's, until the end of a block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def driver_memory() -> str:
    """As Java writes it, for example ``2g``."""
    return variable("STREAMTABLES_SPARK_MEMORY")


def _memory_mb() -> int:
    return memory_bytes(driver_memory()) // 2**20
