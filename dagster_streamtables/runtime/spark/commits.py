"""Commits of Spark that are made once: each has a transaction number of its application.

Delta skips a commit whose number is taken, and refuses one that runs beside another of the same
application. Metadata tell a commit from all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.safe_commits import require_safe_commits
from dagster_streamtables.runtime.spark.session_settings import session_with, writing
from dagster_streamtables.runtime.spark.settings import (
    COMMIT_SETTINGS,
    WRITE_SETTINGS,
    settings_for_now,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession


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
