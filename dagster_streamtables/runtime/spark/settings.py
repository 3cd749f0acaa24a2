"""The Spark settings of every session that this package starts itself, in one list.

They are chosen for one machine and small changes: a statement's fixed cost is the number of its
tasks, so there are two shuffle partitions and no adaptive planning. A cluster has settings of its
own; a session that the user hands in keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.data_files import MOST_FILES
from dagster_streamtables.runtime.spark.environment import memory_bytes, variable
from dagster_streamtables.runtime.spark.home import home
from dagster_streamtables.runtime.spark.jars import jars_setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMIT_SETTINGS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)
"""What a MERGE takes its transaction and its metadata from, for want of options."""

WRITE_SETTINGS: Mapping[str, str] = {
    # What delta-rs reads: see `data_rows`. INT96 and the old calendar are Spark's alone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""How every data file of a stream table is written, in whatever session."""

_RELIED_ON = (
    *WRITE_SETTINGS,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.session.timeZone",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.variable.substitute",
    "spark.databricks.delta.merge.materializeSource",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
)
"""Those without which a refresh would fail, or be wrong; the others make it quick."""


def spark_settings() -> dict[str, str]:
    """Spark confs, Delta's JARs not among them."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        **WRITE_SETTINGS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        # A recursion on the smaller side of a join may run for longer than the default 5 minutes.
        "spark.sql.broadcastTimeout": "3600",
        # Every hash table begins with a page, which by default is 64 MB of a heap of 2 GB: a dozen
        # small joins were a garbage collection.
        "spark.buffer.pageSize": "2m",
        # The side of a join that is sent around is known to be small, or should be: 8 GB, the
        # default, is more than there is.
        "spark.sql.maxBroadcastTableSize": f"{_memory_mb() // 4}m",
        # A session keeps the last plans that it analysed, 16 by default, with all local rows in
        # them: some tables with changes of 100,000 rows filled a heap of 2 GB.
        "spark.connect.session.planCache.enabled": "false",
        # The files of a version are named one by one. For more of them, Spark asks by a job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(MOST_FILES),
        # A file that is gone must fail the refresh; leaving its rows out would be a wrong result.
        "spark.sql.files.ignoreMissingFiles": "false",
        # What stands between quotes is data: `${env:HOME}` there is no question.
        "spark.sql.variable.substitute": "false",
        # A source that is read twice within one MERGE must be the same rows both times.
        "spark.databricks.delta.merge.materializeSource": "all",
        # Without it the next commit of the session carries the transaction number of the last one
        # and Delta skips it.
        "spark.databricks.delta.write.txnVersion.autoReset.enabled": "true",
        # Delta keeps the logs of so many tables in memory, each 2 MB however small the table. By
        # default that is 10,000, and a heap of 2 GB is full at 800.
        "spark.databricks.delta.delta.log.cacheSize": str(_memory_mb() // 6),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(home() / "warehouse"),
        "spark.driver.memory": driver_memory(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def delta_settings() -> dict[str, str]:
    """The confs that a classic session of Spark 4.2 needs to refresh stream tables.

    For one that is built elsewhere, as by `LazyPySparkResource`: Delta's JARs, and what refreshes
    rely on. How much memory and how many partitions is its owner's to say.

    Raises:
        EnvironmentProblem: There is no Java, or Delta's JARs cannot be had.
    """
    settings = spark_settings()
    return {"spark.jars": jars_setting(), **{name: settings[name] for name in _RELIED_ON}}


@contextmanager
def settings_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, which may be somebody else's, until the end of a block."""
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
