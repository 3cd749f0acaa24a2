"""What a Spark server at an address lacks for refreshes, found by a table that both sides write.

A first refresh would meet the same faults one after the other, and some of them, such as a setting
or a clock, only weeks later.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable, write_deltalake

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.table_locations import files_below
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.errors.environment_errors import machine_problem
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.environment import memory_bytes
from dagster_streamtables.runtime.spark.jars import spark_version
from dagster_streamtables.runtime.spark.settings import (
    CONNECT_SETTINGS,
    READING,
    ZONE,
    server_settings,
)
from dagster_streamtables.runtime.spark.spark_commits import require_safe_commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_REQUIRED = {
    *READING,  # set in each session, as is the time zone
    ZONE,
    *log_store.SETTINGS,  # looked at where the root needs it
    "spark.databricks.delta.snapshotPartitions",  # only speed
    "spark.connect.session.manager.defaultSessionTimeout",
    "spark.connect.session.manager.closedSessionsTombstonesSize",
}
_APART = 5.0
"""Seconds by which the clocks may differ."""
_LOGS = "spark.databricks.delta.delta.log.cacheSize"
_LOG_MB = 4
"""Memory of the driver for an open log."""


@dataclass(frozen=True)
class ServerFinding:
    """One thing that refreshes need.

    Attributes:
        subject: What was looked at, such as ``version`` or the name of a setting.
        found: What is there.
        fix: What to do; empty if it is as it should be.
    """

    subject: str
    found: str
    fix: str = ""

    @property
    def fits(self) -> bool:
        return not self.fix


def examine_server(
    spark: SparkSession, root: str, storage_options: Mapping[str, str] | None, tables: int
) -> Iterator[ServerFinding]:
    """Look at the server of a session; a small table is written below the root, and deleted.

    Args:
        spark: A session on the server.
        root: The folder or URI of the tables.
        storage_options: Of delta-rs.
        tables: How many tables there are below the root.
    """
    yield _version(spark)
    yield from _settings(spark)
    yield _clock(spark)
    yield _memory(spark, tables)
    yield from _root(spark, root, storage_options)


def _version(spark: SparkSession) -> ServerFinding:
    server, client = ".".join(spark.version.split(".")[:2]), spark_version()
    fix = "" if server == client else f"install pyspark {server}, or start a server of {client}"
    return ServerFinding("version", f"Spark {spark.version}, pyspark {client}", fix)


def _settings(spark: SparkSession) -> Iterator[ServerFinding]:
    for name, value in server_settings().items():
        if name in _NOT_REQUIRED or (name in CONNECT_SETTINGS and not is_connect(spark)):
            continue
        found = _setting(spark, name)
        if found is None or not _fits(found, value):
            said = "is not set" if found is None else f"is {found}"
            yield ServerFinding(name, said, f"start the server with {name}={value}")


def _setting(spark: SparkSession, name: str) -> str | None:
    """The value of a setting, by Spark's default if it is not set; None if there is none."""
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(name)
    except PySparkException:
        return None


def _fits(found: str, value: str) -> bool:
    """Whether a value is as wanted: equal, in a list, or a larger number of bytes.

    >>> _fits("a.B, c.D", "c.D"), _fits("1073741824", "536870912"), _fits("auto", "all")
    (True, True, False)
    """
    if value.isdigit() and found.isdigit():
        return int(found) >= int(value)
    return value.lower() in (part.strip() for part in found.lower().split(","))


def _clock(spark: SparkSession) -> ServerFinding:
    began = time.time()
    row = spark.sql("SELECT unix_micros(current_timestamp()) AS now").first()
    ended = time.time()
    assert row is not None
    apart = max(began - row["now"] / 1e6, row["now"] / 1e6 - ended, 0.0)
    fix = "" if apart <= _APART else "set the clocks of both machines by NTP"
    return ServerFinding("clock", f"{apart:.0f} seconds apart", fix)


def _memory(spark: SparkSession, tables: int) -> ServerFinding:
    kept, most = int(_setting(spark, _LOGS) or 10_000), _setting(spark, "spark.driver.memory")
    logs = min(tables, kept)
    has = most or "the default of 1g"
    said = (
        f"the logs of {logs} tables take about {logs * _LOG_MB} MB of the driver, which has {has}"
    )
    room = _megabytes(most or "1g") // 2
    if not room or logs * _LOG_MB <= room:
        return ServerFinding("memory", said)
    fix = f"give the driver {4 * logs * _LOG_MB // 1000 + 1}g, or set {_LOGS} to {room // _LOG_MB}"
    return ServerFinding("memory", said, fix)


def _megabytes(memory: str) -> int:
    """Of a size as Spark reads that of a driver: a number alone counts MB; 0 if it is none.

    >>> [_megabytes(text) for text in ("2g", "2048", " 512m ", "plenty")]
    [2048, 2048, 512, 0]
    """
    text = memory.strip()
    return int(text) if text.isdigit() else memory_bytes(text) // 2**20


def _root(
    spark: SparkSession, root: str, storage_options: Mapping[str, str] | None
) -> Iterator[ServerFinding]:
    """Each side writes rows, and reads those of the other."""
    name = f"streamtables_doctor_{uuid.uuid4().hex[:8]}"
    place = f"{root.rstrip('/')}/{name}"
    table, options = f"delta.{spark_name(place)}", dict(storage_options or {}) or None
    rows = pa.table({"id": [1, 2]})
    steps = (
        ("delta-rs writes", lambda: write_deltalake(place, rows, storage_options=options)),
        ("Spark reads", lambda: spark.sql(f"SELECT * FROM {table}").collect()),
        ("commits of Spark", lambda: require_safe_commits(spark, place)),
        ("Spark writes", lambda: spark.sql(f"INSERT INTO {table} VALUES (3)").collect()),
        ("delta-rs reads", lambda: DeltaTable(place, storage_options=options).to_pyarrow_table()),
        ("delete", lambda: files_below(root, storage_options).delete_dir(name)),
    )
    for subject, step in steps:
        try:
            step()
        except Exception as error:  # whatever is wrong is what is looked for
            yield _failure(f"root: {subject}", error)
            break
    else:
        yield ServerFinding("root", "both sides read and write it")
        return
    with suppress(OSError):
        files_below(root, storage_options).delete_dir(name)


def _failure(subject: str, error: Exception) -> ServerFinding:
    known = error if isinstance(error, StreamTablesError) else machine_problem(error)
    if known is None:
        why = first_line(str(error))
        return ServerFinding(subject, why, "let both sides see the root at the same path")
    return ServerFinding(subject, ": ".join(filter(None, (known.what, known.why))), known.fix)
