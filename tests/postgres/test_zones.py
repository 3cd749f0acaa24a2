"""Timestamps in the zone of the session, whose clock is set forward and back.

PostgreSQL counts 24 hours as hours and Spark as a day, which is as long as the clock says; and of a
time that a clock shows twice, PostgreSQL takes the later instant and Java the earlier one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, View
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition
from postgres.cases import REFUSED_OF_ZONES, entries
from postgres.compared import ours, theirs
from runtime.delta import write
from zones import COLUMNS, ROWS, Row

_ZONE = "spark.sql.session.timeZone"
EXPRESSIONS = entries("zones.txt")
COLUMNS_OF_Z = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(EXPRESSIONS))
QUERIES = {
    "columns": f"SELECT id, {COLUMNS_OF_Z} FROM z",
    "days": "SELECT date_trunc('day', a) AS day, count(*) AS n, max(a - b) AS longest FROM z "
    "GROUP BY 1",
    "series": "SELECT id, g FROM z, generate_series(a, a + interval '5 hours', "
    "interval '1 hour') AS g",
    "months": "SELECT id, g FROM z, generate_series(a, timestamptz '2025-01-01 00:00+00', "
    "interval '1 month') AS g",
    "gaps": "SELECT id, a - lag(a) OVER (ORDER BY id) AS gap FROM z",
}
SPANS = View("spans", "SELECT id, a - b AS span FROM z", dialect="postgres")
QUERIES["of a view"] = (
    "SELECT id, span > interval '1 day' AS long FROM spans ORDER BY span DESC, id LIMIT 5"
)
TYPES = {
    "id": ("INT", pa.int32()), "a": ("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
    "b": ("TIMESTAMPTZ", pa.timestamp("us", "UTC")), "ts": ("TIMESTAMP", pa.timestamp("us")),
    "d": ("DATE", pa.date32()), "n": ("INT", pa.int32()),
}  # fmt: skip


def _insert(postgres: Any, lake: Lake, rows: list[Row]) -> None:
    shown = [(row[0], f"{row[1]}Z", f"{row[2]}Z", *row[3:]) for row in rows]
    with postgres.cursor() as cursor:
        cursor.executemany("INSERT INTO z VALUES (%s, %s, %s, %s, %s, %s)", shown)
    columns = zip(*shown, strict=True)
    arrays = [
        pa.array(values, type_ if type_ == pa.int32() else pa.string()).cast(type_)
        for values, (_, type_) in zip(columns, TYPES.values(), strict=True)
    ]
    write(lake, "z", pa.table(arrays, names=list(TYPES)))


@pytest.mark.long
@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
)
def test_what_is_stored_is_what_postgres_returns(
    spark: SparkSession, lake: Lake, postgres: Any, zone: str
) -> None:
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in TYPES.items())
    postgres.execute(f"SET timezone = '{zone}'; DROP TABLE IF EXISTS z CASCADE")
    postgres.execute(f"CREATE TABLE z ({columns}); CREATE VIEW spans AS {SPANS.query}")
    tables = [
        StreamTable(
            name.replace(" ", "_"),
            QUERIES[name],
            dialect="postgres",
            views=(SPANS,),
            session_timezone=zone,
            differential_max_change_ratio=0,
        )
        for name in QUERIES
    ]
    spark.conf.set(_ZONE, zone)
    try:
        for step in (0, 1):
            if step:
                postgres.execute("DELETE FROM z WHERE id % 7 = 3")
                DeltaTable(lake.location("z")).delete("id % 7 = 3")
            _insert(postgres, lake, ROWS[step::2])
            for table in tables:
                done = lake.refresh(table)
                assert not step or done.action is Action.DIFFERENTIAL, done
                expected, found = theirs(postgres, table.query), ours(lake, table.name)
                assert found == expected, found.difference(expected)
    finally:
        spark.conf.set(_ZONE, "UTC")
        postgres.execute("SET timezone = 'UTC'")


@pytest.mark.parametrize(("sql", "why"), REFUSED_OF_ZONES)
def test_what_would_differ_is_refused(sql: str, why: str) -> None:
    with pytest.raises(InvalidDefinition, match=why):
        translate(sql, "postgres", COLUMNS)
