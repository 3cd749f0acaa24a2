"""Whether a Spark session may commit to a table: on S3, its log store decides.

Delta's own log store for S3 looks whether a commit exists, and then puts it: what another engine or
another JVM commits in between is erased, and nobody is told. That of DynamoDB protects Spark from
Spark, and delta-rs takes no part in it. Elsewhere, Delta's log stores and delta-rs both create a
commit or fail.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AS_ONE = "spark.delta.logStore.class"

_alone: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def allow_unsafe_commits(spark: SparkSession) -> None:
    """Let a session commit by any log store: nobody else commits to its tables."""
    _alone.add(spark)


def commits_safely(spark: SparkSession, location: str) -> bool:
    """Whether no commit of a session can erase that of another writer, or it is allowed to."""
    scheme, separator, _ = location.partition("://")
    if not separator or scheme not in log_store.SCHEMES or spark in _alone:
        return True
    return _log_store(spark, scheme) == log_store.CLASS


def require_safe_commits(spark: SparkSession, location: str) -> None:
    """Check, before Spark commits to a table, that it erases no commit.

    Raises:
        EnvironmentProblem: It could.
    """
    if commits_safely(spark, location):
        return
    scheme = location.partition("://")[0]
    setting = log_store.setting(scheme)
    found = _log_store(spark, scheme)
    raise EnvironmentProblem(
        "Spark does not commit, since it could erase a commit of another writer",
        where=location,
        why=f"its {setting} is {found}, which is not known to be safe beside delta-rs"
        if found
        else f"its {setting} is not set, and Delta's own log store overwrites what others commit",
        fix=f"start Spark with spark.jars={log_store.JAR} (beside Delta's JARs) and with "
        f"{setting}={log_store.CLASS}; if its owner does not allow that, raise driver_rows, so "
        "that delta-rs commits, or set allow_unsafe_commits where Spark alone writes the tables",
    )


def _log_store(spark: SparkSession, scheme: str) -> str | None:
    """The class of the log store of a scheme; Delta reads it from what Spark was started with."""
    for name in (log_store.setting(scheme), _AS_ONE):
        if is_connect(spark):
            found = spark.conf.get(name, None)
        else:
            found = spark.sparkContext.getConf().get(name)
        if found:
            return found
    return None
