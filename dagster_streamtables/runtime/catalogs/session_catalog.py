"""`SessionCatalog`: the tables of any catalog of the Spark session, such as Hive's or Glue's.

`register` gives such a catalog a stream table, so that others find it there by its name. The table
stays where it is: it becomes an external one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.errors import EnvironmentProblem, RefusedOperation
from dagster_streamtables.runtime.catalogs.external_table import (
    ExternalTable,
    location_of,
    require_readable,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
_NO_CATALOG = "REQUIRES_SINGLE_PART_NAMESPACE"
_VIEW = "EXPECT_TABLE_NOT_VIEW"


class SessionCatalog:
    """Asked by a statement of Spark, so its answers are worth keeping."""

    lifetime = 3600.0
    by_name = False

    def __init__(self, session: Callable[[], SparkSession] | None) -> None:
        """Args: session: Returns a session; None if Spark must not be asked."""
        self._session = session

    @property
    def can_be_asked(self) -> bool:
        return self._session is not None

    def find(self, name: str, known: ExternalTable | None) -> ExternalTable | None:
        from pyspark.errors import AnalysisException

        assert self._session is not None
        try:
            [said] = self._session().sql(f"DESCRIBE DETAIL {name_in_spark(name)}").collect()
        except AnalysisException as error:
            condition = error.getCondition() or ""
            if condition.startswith(_VIEW):
                require_readable(name, format="", kind="VIEW", features=())
            if condition in _MISSING:
                return None
            if condition != _NO_CATALOG:
                raise
            raise EnvironmentProblem(
                f'the Spark session has no catalog for "{name}"',
                why=f"{condition}: it takes the first part of the name for a schema",
                fix="start Spark with the catalog (spark.sql.catalog.…), or give its real address "
                "in catalogs",
            ) from error
        require_readable(
            name, format=said["format"], kind="TABLE", features=said["tableFeatures"] or ()
        )
        return ExternalTable(location_of(name, said["location"]), said["id"])


def register(spark: SparkSession, name: str, location: str, comment: str) -> None:
    """Make sure that a catalog has a table of a name at a location, with a comment.

    Args:
        spark: A session that has the catalog.
        name: The catalog, the schema and the table, joined by dots. A missing schema is created.
        location: The path or URI of a Delta table.
        comment: Of the table; an empty one changes nothing.

    Raises:
        RefusedOperation: The catalog has another table of that name.
    """
    quoted = name_in_spark(name)
    known = SessionCatalog(lambda: spark).find(name, None)
    if known is None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name_in_spark(name.rpartition('.')[0])}").collect()
        spark.sql(f"CREATE TABLE {quoted} USING delta LOCATION {_text(location)}").collect()
    elif known.location != location_of(name, location):
        raise RefusedOperation(
            f'the catalog has another table "{name}"',
            where=known.location,
            why=f"the stream table is at {location}",
            fix="drop or rename that table of the catalog, or register in another catalog",
        )
    if comment:
        spark.sql(f"COMMENT ON TABLE {quoted} IS {_text(comment)}").collect()


def name_in_spark(name: str) -> str:
    """The name of a table in Spark's SQL.

    >>> name_in_spark("main.sales.orders")
    '`main`.`sales`.`orders`'
    """
    parts = (exp.to_identifier(part, quoted=True) for part in name.split("."))
    return ".".join(part.sql("spark") for part in parts)


def _text(value: str) -> str:
    """A literal of Spark's SQL."""
    return exp.Literal.string(value).sql("spark")
