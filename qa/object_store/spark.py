"""Sessions of Spark over the store, with our log store or with Delta's default."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dagster_streamtables.runtime.spark.jars import delta_jars
from dagster_streamtables.runtime.spark.log_store import JAR, SETTINGS
from dagster_streamtables.runtime.spark.settings import delta_settings
from qa.object_store.store import Store

CONNECTOR = "org.apache.hadoop:hadoop-aws:3.5.0"
"""For the version of Hadoop that is among the JARs of PySpark."""
CONNECTOR_VARIABLE = "STREAMTABLES_S3_CONNECTOR"
"""Names a folder with the connector's JARs, of 700 MB, which are downloaded otherwise."""
_PLAIN = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.delta.log.cacheSize": "100",
}


class LogStore(StrEnum):
    ours = "ours"
    default = "default"


def session(
    store: Store, log_store: LogStore = LogStore.ours, more: dict[str, str] | None = None
) -> SparkSession:
    """A classic session in a JVM of this process."""
    settings = {**delta_settings(), **store.settings, **_PLAIN, **_jars(), **(more or {})}
    if log_store is LogStore.default:
        settings = {name: value for name, value in settings.items() if name not in SETTINGS}
    if not settings["spark.jars"]:
        del settings["spark.jars"]
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.master("local[2]").getOrCreate()


def _jars() -> dict[str, str]:
    """S3A, Delta and the log store are loaded by one class loader, or do not find one another."""
    folder = os.environ.get(CONNECTOR_VARIABLE)
    if not folder:
        return {"spark.jars.packages": CONNECTOR}
    jars = [*delta_jars(), JAR, *sorted(Path(folder).glob("*.jar"))]
    # As spark.jars, each session would copy them.
    return {"spark.jars": "", "spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
