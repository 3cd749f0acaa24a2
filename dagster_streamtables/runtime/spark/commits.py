"""Commits of Spark that are made once, and only where no other can erase them.

Each has a transaction number of its application: Delta skips a commit whose number is taken, and
refuses one that runs beside another of the same application. Metadata tell a commit from all
others.

On S3, the log store of the session decides whether it may commit. Delta's own looks whether a
commit exists, and then puts it: what another engine or another JVM commits in between is erased,
and nobody is told. That of DynamoDB protects Spark from Spark, and delta-rs takes no part in it.
Elsewhere, Delta's log stores and delta-rs both create a commit or fail.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.session_settings import session_with, writing
from dagster_streamtables.runtime.spark.settings import (
    COMMIT_SETTINGS,
    WRITE_SETTINGS,
    settings_for_now,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession

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


@dataclass(frozen=True)
class CommitMark:
    """What a commit stores besides rows."""

    application: str
    number: int | None
    """Greater than that of the application's last commit; None for a commit without one."""
    metadata: str

    def on(self, writer: DataFrameWriter) -> DataFrameWriter:
        """Mark the commit of a DataFrame."""
        writer = writer.option("userMetadata", self.metadata)
        if self.number is None:
            return writer
        return writer.option("txnAppId", self.application).option("txnVersion", self.number)


@contextmanager
def as_we_write(spark: SparkSession, location: str) -> Iterator[None]:
    """Write a table with `WRITE_SETTINGS`; one writer at a time if the session's settings differ.

    Under the lock, the session has its own settings, not those that another thread set temporarily.

    Raises:
        EnvironmentProblem: The commit could erase another one.
    """
    require_safe_commits(spark, location)
    with ExitStack() as held:
        held.enter_context(writing[spark])
        if any(spark.conf.get(name, None) != value for name, value in WRITE_SETTINGS.items()):
            held.enter_context(settings_for_now(spark, WRITE_SETTINGS))
        else:
            held.close()
        yield


@contextmanager
def marking(
    spark: SparkSession,
    location: str,
    mark: CommitMark,
    file_rows: int,
    more: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Mark the commits of statements, which have no options.

    Args:
        spark: The session.
        location: The table that they change.
        mark: What a commit stores.
        file_rows: Number of rows that Spark writes to a file.
        more: Other settings of the statements.

    Yields:
        The session that must run them, as `session_with`.

    Raises:
        EnvironmentProblem: A commit could erase another one.
    """
    require_safe_commits(spark, location)
    values = mark.application, str(mark.number), mark.metadata
    names = COMMIT_SETTINGS if mark.number is not None else COMMIT_SETTINGS[-1:]
    settings = {
        **WRITE_SETTINGS,
        **(more or {}),
        **dict(zip(reversed(names), reversed(values), strict=False)),
    }
    settings["spark.sql.files.maxRecordsPerFile"] = str(file_rows)
    with session_with(spark, settings) as marked:
        yield marked
