"""How a lake reaches its tables, and the Spark that reads them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import View
from dagster_streamtables.runtime.compute.version_views import Views, views_of
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Access:
    """The tables of a lake, and its Spark sessions; threads may share it."""

    catalog: TableCatalog
    views: tuple[View, ...]
    """Queries that others may name like tables."""
    spark: SparkSession | str | None = field(repr=False)
    """A session, an address, or None for the local server."""
    driver_rows: int | None
    """Rows that may come to this process; None: depends on their width."""
    allow_unsafe_commits: bool = False
    """Whether Spark may commit where it could erase a commit of another writer."""

    def session_of(self, table: StreamTable) -> Views:
        """The views of a stream table, in a session that has the functions that it calls.

        Raises:
            InvalidDefinition: A function cannot be imported, or Spark does not take it.
        """
        views = self.session(table.name, table.session_timezone)
        called = table.called_functions
        if called:
            from dagster_streamtables.runtime.spark.user_functions import register

            register(views.spark, called)
        return views

    def session(self, table: str, zone: str | None = None) -> Views:
        """The views of a stream table, in its own session, if Spark allows.

        Args:
            table: Its name.
            zone: The time zone of its statements; None if none of them depends on it.
        """
        from dagster_streamtables.runtime.spark import commits
        from dagster_streamtables.runtime.spark.session import open_session

        root = self.catalog.names.root
        about = f"{root}#{table}" if zone in (None, "UTC") else f"{root}#{table}#{zone}"
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, about))
        session = open_session(self.spark, session_id=identity, zone=zone)
        if self.allow_unsafe_commits:
            commits.allow_unsafe_commits(session)
        return views_of(session, about)
