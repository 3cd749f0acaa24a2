"""`Access`: how a lake reaches its tables, and the Spark sessions that read them.

Each session has the functions of `runtime/model/query_functions.py`, registered once.
"""

from __future__ import annotations

import sys
import threading
import uuid
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import View
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.compute.row_files import RowFiles
from dagster_streamtables.runtime.compute.spark_relations import Views, views_of
from dagster_streamtables.runtime.model.query_functions import UserFunction
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.spark.spark_commits import allow_unsafe_commits

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
            register(views.spark, called)
        return views

    def session(self, table: str, zone: str | None = None) -> Views:
        """The views of a stream table, over Spark Connect in a session for it alone; `zone` is None
        if no statement depends on the time zone."""
        root = self.catalog.names.root
        about = f"{root}#{table}" if zone in (None, "UTC") else f"{root}#{table}#{zone}"
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, about))
        session = open_session(self.spark, session_id=identity, zone=zone)
        if self.allow_unsafe_commits:
            allow_unsafe_commits(session)
        return views_of(session, about, self._row_files)

    @cached_property
    def _row_files(self) -> RowFiles:
        return RowFiles(self.catalog.names.root, self.catalog.logs.storage_options)


_registered: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
_registering = threading.Lock()


def register(spark: SparkSession, functions: Iterable[UserFunction]) -> None:
    """Register functions under their names in Spark.

    Raises:
        InvalidDefinition: Spark does not take one: its type or its SQL is wrong.
    """
    with _registering:
        known = _registered.setdefault(spark, set())
        for each in functions:
            if each.registered not in known:
                _register(spark, each)
                known.add(each.registered)


def _register(spark: SparkSession, function: UserFunction) -> None:
    from pyspark import cloudpickle
    from pyspark.errors import PySparkException

    try:
        if function.function is None:
            create = f"CREATE OR REPLACE TEMPORARY FUNCTION {function.registered}"
            spark.sql(f"{create}{function.rest}").collect()
        else:
            # Spark's workers may not be able to import the module, so its code is sent along.
            module = sys.modules.get(function.function.__module__)
            if module is not None:
                cloudpickle.register_pickle_by_value(module)
            spark.udf.register(function.registered, function.function, function.returns)
    except PySparkException as error:
        if not error.getCondition():
            raise
        raise InvalidDefinition(
            f"Spark does not take the function {function.name}",
            why=str(error).partition("\n")[0],
            fix="correct its type or its text",
        ) from error
