"""Real Delta tables for tests: written by DuckDB, changed by Spark's DML, read by delta-rs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from compiler.database import Database, Rows, _shown
from dagster_streamtables import Lake
from dagster_streamtables.compiler import at_time, comparable_columns, read, with_one_answer
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_schema import has_variants, spark_name
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.spark.settings import settings_for_now
from named_rows import NamedRows

FEED = {"delta.enableChangeDataFeed": "true"}


def write(lake: Lake, name: str, rows: pa.Table, *, feed: bool = True, **more: object) -> None:
    """Create a source, or add rows to it."""
    more = {"mode": "append", "configuration": FEED if feed else None} | more
    Path(lake.location(name)).mkdir(parents=True, exist_ok=True)
    write_deltalake(lake.location(name), rows, **more)  # type: ignore[call-overload]


def write_by_spark(lake: Lake, name: str, rows: pa.Table, **properties: str) -> None:
    """Create a source of one file as Spark writes it, with properties of Delta."""
    options = {f"delta.{name}": value for name, value in properties.items()}
    files = session(lake).createDataFrame(rows).coalesce(1).write.format("delta")
    files.options(**options).save(lake.location(name))


def write_from(database: Database, lake: Lake, tables: tuple[str, ...], *, feed: bool) -> None:
    for table in tables:
        write(lake, table, database.connection.execute(f"FROM {table}").to_arrow_table(), feed=feed)


def session(lake: Lake) -> SparkSession:
    """The session that a lake was made with."""
    return lake.access.session("tests").spark


def log_of(lake: Lake, name: str) -> TableLog:
    """The log of a table that exists."""
    log = Logs().newest(lake.location(name))
    assert log is not None
    return log


def views(lake: Lake, *names: str) -> SparkSession:
    """A session in which tables of the lake are views by their names, as plain Spark reads them."""
    spark = session(lake)
    for name in names:
        spark.read.format("delta").load(lake.location(name)).createOrReplaceTempView(name)
    return spark


def append_by_spark(
    lake: Lake, name: str, query: str, *, feed: bool = False, alone: bool = False
) -> None:
    """Add the rows of a query to a source, as Spark writes them; `alone`: in one file."""
    rows = session(lake).sql(query)
    files = (rows.coalesce(1) if alone else rows).write.format("delta").mode("append")
    files.options(**FEED if feed else {}).save(lake.location(name))


def create(
    lake: Lake, name: str, columns: str, *, partitioned_by: str = "", **properties: object
) -> None:
    """Create an empty source as Spark does, with properties of Delta."""
    told = ", ".join(f"'delta.{key}' = '{str(value).lower()}'" for key, value in properties.items())
    parts = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    more = f"{parts} TBLPROPERTIES ({told})" if told else parts
    on_spark(lake, f"CREATE TABLE {{{name}}} ({columns}) USING delta {more}")


def on_spark(
    lake: Lake, statement: str, settings: Mapping[str, str] = MappingProxyType({})
) -> DataFrame:
    """Run a statement as it is written; `{t}` in it is the table ``t`` of the lake.

    The settings are those of the session for as long as it runs.
    """
    named = _NAMED.sub(lambda found: f"delta.`{lake.location(found[1])}`", statement)
    with settings_for_now(session(lake), settings):
        return session(lake).sql(named)


_NAMED = re.compile(r"\{([\w.]+)\}")


def run_on_delta(lake: Lake, script: str) -> None:
    """Run DML as it is written, its tables being those of the lake."""
    spark = session(lake)
    for statement in sqlglot.parse(script, dialect="spark"):
        if statement is None:
            continue
        if isinstance(statement, exp.Insert) and isinstance(statement.expression, exp.Values):
            _in_type(statement, lake.columns(statement.find(exp.Table).name) or {})
        for table in statement.find_all(exp.Table):
            place = exp.Table(
                this=exp.to_identifier(lake.location(table.name), quoted=True),
                db=exp.to_identifier("delta"),
                alias=table.args.get("alias"),
            )
            table.replace(place)
        spark.sql(statement.sql("spark"))


def _in_type(insert: exp.Insert, types: Mapping[str, str]) -> None:
    """Floats as text: Spark reads `-0.0` as a decimal, which has one zero, 'NaN' as a string."""
    names = [each.name for each in insert.this.expressions] or list(types)
    for row in insert.expression.expressions:
        for name, value in zip(names, list(row.expressions), strict=True):
            if types[name] == "double" and not isinstance(value, exp.Null):
                text = exp.Literal.string(value.sql("spark").strip("'"))
                value.replace(exp.cast(text, "DOUBLE"))


def stored(lake: Lake, name: str, columns: Sequence[str]) -> Rows:
    """The rows of a table as text, with some of its columns, by name, in this order.

    They are read by delta-rs, or with a VARIANT, as Spark compares them.
    """
    types = lake.columns(name) or {}
    if has_variants(types.values()):
        rows = _by_forms(lake, name, {each: types[each] for each in columns})
    else:
        read = DeltaTable(lake.location(name)).to_pyarrow_table(columns=list(columns))
        rows = pa.table(read).to_pylist()
    return Counter(tuple(_shown(row[each]) for each in columns) for row in rows)


def held(lake: Lake, name: str) -> NamedRows:
    """All visible columns and rows of a table, as text."""
    columns = list(visible_types(lake.columns(name) or {}))
    return NamedRows.of(columns, stored(lake, name, columns))


def outputs(lake: Lake, query: str) -> list[str]:
    """The columns of a query over tables of the lake, as plain Spark names and orders them.

    In a recursion, Spark takes no UNION; with UNION ALL in its place the columns are the same.
    """
    text = read(query)
    text = with_one_answer(text, {name: lake.columns(name) or {} for name in text.sources})
    time = at_time(text, "2024-01-01T00:00:00+00:00")  # of no account for the names
    sql = text.over(lambda name: f"delta.`{lake.location(name)}`", more=time).sql
    return session(lake).sql(_UNION.sub("UNION ALL", sql)).columns


_UNION = re.compile(r"\bUNION\b(?!\s+ALL)(\s+DISTINCT)?", re.IGNORECASE)


def _by_forms(lake: Lake, name: str, types: Mapping[str, str]) -> list[dict[str, Any]]:
    forms = comparable_columns(types)
    shown = lake.read(name).selectExpr(
        *(f"{forms.get(each, spark_name(each))} AS {spark_name(each)}" for each in types)
    )
    return [row.asDict(recursive=True) for row in shown.collect()]
