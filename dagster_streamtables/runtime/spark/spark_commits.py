"""Commits of Spark that are made once, and only where no other can erase them.

Each has a transaction number of its application: Delta skips a commit whose number is taken, and
refuses one that runs beside another of the same application. Metadata distinguish the commits.

On S3, the log store of the session decides whether it may commit. Delta's own log store checks
whether a commit exists, and then puts it, which silently erases commits that another engine or JVM
makes in between. The one with DynamoDB protects Spark only from Spark, not from delta-rs.
Elsewhere, Delta's log stores and delta-rs both create a commit or fail.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.session import session_with, writing
from dagster_streamtables.runtime.spark.settings import (
    COMMIT_SETTINGS,
    WRITE_SETTINGS,
    settings_for_now,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_AS_ONE = "spark.delta.logStore.class"

_alone: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def allow_unsafe_commits(spark: SparkSession) -> None:
    """Let a session commit by any log store, as its user requests."""
    _alone.add(spark)


def commits_safely(spark: SparkSession, location: str) -> bool:
    """Whether no commit of a session can erase that of another writer, or it is allowed to."""
    scheme, separator, _ = location.partition("://")
    if not separator or scheme not in log_store.SCHEMES or spark in _alone:
        return True
    return _log_store(spark, scheme) == log_store.CLASS


def require_safe_commits(spark: SparkSession, location: str) -> None:
    """Check, before Spark commits to a table, that it cannot erase a commit.

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


@dataclass(frozen=True)
class Commit:
    """One commit of Spark to a Delta table.

    Every method raises EnvironmentProblem if the commit could erase another one.
    """

    spark: SparkSession
    location: str
    mark: CommitMark
    file_rows: int
    """Number of rows that Spark writes to a file."""

    @property
    def table(self) -> str:
        """The table in a statement."""
        return f"delta.{spark_name(self.location)}"

    def append(self, rows: DataFrame) -> None:
        self._save(rows, "append", {})

    def overwrite(self, rows: DataFrame, options: Mapping[str, str]) -> None:
        """Replace all rows, or create the table."""
        self._save(rows, "overwrite", options)

    def advance(self) -> None:
        """Commit the mark without rows."""
        self.append(self.spark.sql(f"SELECT * FROM {self.table} WHERE false"))

    def merge(
        self,
        rows: str,
        condition: str,
        clauses: Iterable[str],
        *,
        evolves: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Row | None:
        """Change stored rows ``t`` by the rows ``s`` of a query that match, by clauses ``WHEN …``;
        returns Delta's numbers of rows. `evolves`: add the columns that only `rows` has."""
        merge = "MERGE WITH SCHEMA EVOLUTION" if evolves else "MERGE"
        statement = f"{merge} INTO {self.table} AS t USING ({rows}) AS s ON {condition}"
        done = self.run(f"{statement} {' '.join(clauses)}", settings)
        return done[0] if done else None

    def run(self, statement: str, settings: Mapping[str, str] | None = None) -> list[Row]:
        """Run a statement that is a commit."""
        with self.session(settings) as marked:
            return marked.sql(statement).collect()

    @contextmanager
    def session(self, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
        """The session that marks the commits of its statements, as `session_with`."""
        require_safe_commits(self.spark, self.location)
        application, number, metadata = COMMIT_SETTINGS
        ours = {
            **WRITE_SETTINGS,
            **(settings or {}),
            metadata: self.mark.metadata,
            "spark.sql.files.maxRecordsPerFile": str(self.file_rows),
        }
        if self.mark.number is not None:
            ours |= {application: self.mark.application, number: str(self.mark.number)}
        with session_with(self.spark, ours) as marked:
            yield marked

    def _save(self, rows: DataFrame, mode: str, options: Mapping[str, str]) -> None:
        """Write rows; alone, if the session's own settings are not `WRITE_SETTINGS`, which only the
        lock shows: without it, another thread may have set them temporarily."""
        require_safe_commits(self.spark, self.location)
        mark, writer = self.mark, rows.write.format("delta").mode(mode).options(**options)
        writer = writer.option("userMetadata", mark.metadata)
        writer = writer.option("maxRecordsPerFile", self.file_rows)
        if mark.number is not None:
            writer = writer.option("txnAppId", mark.application).option("txnVersion", mark.number)
        with ExitStack() as held:
            held.enter_context(writing(self.spark))
            conf = self.spark.conf
            if any(conf.get(name, None) != value for name, value in WRITE_SETTINGS.items()):
                held.enter_context(settings_for_now(self.spark, WRITE_SETTINGS))
            else:
                held.close()
            writer.save(self.location)
