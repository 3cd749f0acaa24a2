"""Run a query and return its rows, in one call to the server.

Spark Connect's client makes three calls: whether the text is a command, for the columns, and for
the rows. Each time the server analyzes the text, a large part of the cost of a small refresh. The
result of a query that runs at once also has its columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.arrow import has_variant_columns, nullable, pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_connect(about: SparkSession | DataFrame) -> bool:
    """Whether Spark is a remote server, and nothing of it runs in this process."""
    return type(about).__module__.startswith("pyspark.sql.connect")


def query(spark: SparkSession, text: str, named: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a query, which runs later; over Spark Connect, so do the checks of its text.

    It reads the rows of `named` under their names, in backticks; they are sent along with the
    statement, without the calls for a view.
    """
    if not is_connect(spark):
        return _classic(spark, text, named)
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    connected: Any = spark
    local: Mapping[str, Any] = named
    views = [SubqueryAlias(rows._plan, name) for name, rows in local.items()]
    return DataFrame(SQL(text, [], {}, views), connected)


def arrow_rows(rows: DataFrame) -> pa.Table:
    """Run the query and return its rows; timestamps are in UTC."""
    if not is_connect(rows):
        return _classic_rows(rows)
    connected: Any = rows
    table, schema = connected._to_table()
    return table.cast(_schema_of_rows(schema))


def arrow_batches(rows: DataFrame) -> Iterator[pa.Table]:
    """As `arrow_rows`, a few megabytes at a time, in the order of the query; from a classic
    session, all at once."""
    if not is_connect(rows):
        yield rows.toArrow()
        return
    from pyspark.sql.types import StructType

    connected: Any = rows
    client = connected._session.client
    plan = connected._plan.to_proto(client)
    schema: pa.Schema | None = None
    for part in client.to_table_as_iterator(plan, connected._plan.observations):
        if isinstance(part, StructType):
            schema = _schema_of_rows(part)
        elif part.num_rows:
            yield part if schema is None else part.cast(schema)


def _classic_rows(rows: Any) -> pa.Table:
    schema = _schema_of_rows(rows.schema)
    if not has_variant_columns(schema):
        return rows.toArrow()
    # `toArrow` fails for a VARIANT that is NULL.
    batches = rows._collect_as_arrow(empty_list_if_zero_records=False)
    return pa.Table.from_batches(batches).cast(schema)


def arrow_schema(struct: StructType, **options: Any) -> pa.Schema:
    """The columns in Arrow's types; timestamps are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    takes_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    zone: Any = {"timezone": "UTC"} if takes_zone else {}  # Spark 4.0 and 4.1: always UTC
    return to_arrow_schema(struct, **zone, **options)


def _schema_of_rows(struct: StructType) -> pa.Schema:
    """The columns of a query in Arrow's types; the two strings of a VARIANT are NULL if it is."""
    made = arrow_schema(struct, error_on_duplicated_field_names_in_struct=True)
    return nullable(made) if has_variant_columns(made) else made


def _classic(spark: SparkSession, text: str, named: Mapping[str, DataFrame]) -> DataFrame:
    if not named:
        return spark.sql(text)
    text = text.replace("{", "{{").replace("}", "}}")
    for name in named:
        text = text.replace(f"`{name}`", f"{{{name}}}")
    return spark.sql(text, args=None, **named)
