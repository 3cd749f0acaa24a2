"""Timestamps in the zone of the session, whose clock is set forward and back.

PostgreSQL counts 24 hours as hours and Spark as a day, which is as long as the clock says; and of a
time that a clock shows twice, PostgreSQL takes the later instant and Java the earlier one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, InvalidDefinition, Lake, StreamTable, View
from dagster_streamtables.compiler.dialect import translate
from postgres.compared import ours, theirs
from runtime.delta import write
from zones import COLUMNS, ROWS, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
EXPRESSIONS = [
    "a - b", "extract(epoch from a - b)", "extract(hour from a - b)", "a - b > interval '1 day'",
    "a - b < interval '-1 hour'", "b + interval '1 day' > a", "a + interval '1 day'",
    "a + interval '24 hours'", "a + interval '36 hours'", "a + interval '1 day 2 hours'",
    "a - interval '1 month'", "a + interval '90 minutes'", "a - interval '2880 minutes'",
    "interval '48 hours' + a", "b + (a - b)", "a + n * interval '1 hour'",
    "a + n * interval '30 minutes'", "a - (n || ' hours')::interval", "a + n * interval '1 day'",
    "a + make_interval(hours => n)", "a + make_interval(months => n)", "date_trunc('day', a)",
    "date_trunc('hour', a)", "date_trunc('week', a)", "extract(hour from a)", "a::date",
    "a::timestamp", "a::text", "ts::timestamptz", "d::timestamptz", "a = ts", "ts < a", "a <> ts",
    "a > d", "a > '2024-03-31 02:30'", "timestamptz '2024-10-27 02:30'",
    "timestamptz '2024-10-27 02:30+02'", "timestamptz '2024-03-31 02:30'",
    "to_timestamp('2024-10-27 02:30', 'YYYY-MM-DD HH24:MI')",
    "date_bin('15 minutes', a, timestamptz '2001-01-01')",
    "date_bin('7 days', a, timestamptz '2001-01-01')", "extract(month from age(a, b))",
    "a AT TIME ZONE 'Europe/Berlin'", "ts AT TIME ZONE 'America/New_York'",
    "to_char(a, 'YYYY-MM-DD HH24:MI:SS')", "(ts - d)::text", "d + interval '36 hours'",
    "date_trunc('hour', ts)", "date_trunc('minute', ts)", "date_trunc('second', ts)",
    "date_trunc('day', ts)", "date_trunc('quarter', ts)", "date_trunc('week', ts)",
    "date_trunc('hour', a, 'America/New_York')", "date_trunc('month', a, 'Asia/Tokyo')",
    "to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US')", "to_char(ts, 'FMDay, FMDD FMMonth YYYY HH12:MI AM')",
    "to_char(ts, 'Month|Day|MON|dy|Q|DDD|IW|IYYY|D|ID|WW|pm')", "to_char(ts, 'HH24\"h\"MI')",
    "a > '2024-10-27 02:30'", "a BETWEEN ts AND ts + interval '1 day'", "a IN (ts, b)",
    "a BETWEEN '2024-10-27 02:30' AND '2024-11-03 01:30'", "a NOT IN ('2024-10-27 02:30', b)",
    "coalesce(ts, '2024-03-31 02:30')", "make_timestamp(2024, 3, 31, 2, abs(n), 0)",
    "make_timestamptz(2024, 10, 27, 2, 30, 0)", "make_timestamptz(2024, 3, 31, 2, 30, 0)",
    "make_timestamptz(2024, 3, id % 28 + 1, abs(n) % 24, abs(n), 15.25, 'America/New_York')",
    "date_add(a, '1 month 1 day 12:30')", "date_subtract(a, interval '1 month 1 day 12 hours')",
    "date_add(timestamptz '2024-10-26 00:30+00', interval '1 day')",
    "date_add(timestamptz '2024-09-27 00:30+00', interval '1 month')",
    "date_add(a, n * interval '1 day')", "date_add(a, n * interval '1 hour')",
    "date_add(a, n * interval '1 day', 'Europe/Berlin')",
    "date_subtract(a, interval '1 month 2 days 25 hours', 'America/New_York')",
    "a AT LOCAL", "ts AT LOCAL", "ts AT LOCAL AT TIME ZONE 'UTC'", "date_trunc('decade', a)",
    "date_trunc('century', a)", "date_trunc('millennium', d)", "date_trunc('decade', ts)",
    "date_trunc('century', a, 'America/New_York')", "justify_days(a - b)::text",
]  # fmt: skip
QUERIES = {
    "columns": "SELECT id, "
    + ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(EXPRESSIONS))
    + " FROM z",
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
        pa.array(values, pa.string()).cast(type_)
        if type_ != pa.int32()
        else pa.array(values, type_)
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


REFUSED = [
    ("SELECT generate_series(a, b, interval '24 hours') AS g FROM z", "24 hours as a day"),
    ("SELECT a + (interval '20 hours' + interval '20 hours') AS x FROM z", "24 hours as a day"),
    ("SELECT coalesce(a, ts) AS x FROM z", "the session's zone"),
    ("SELECT coalesce(a, '2024-10-27 02:30') AS x FROM z", "the session's zone"),
    ("SELECT CASE WHEN n > 0 THEN ts ELSE a END AS x FROM z", "the session's zone"),
    ("SELECT a - ts AS x FROM z", "the session's zone"),
    ("SELECT a - b > interval '1 month' AS x FROM z", "months with days"),
    ("SELECT date_trunc('hour', a - b) AS x FROM z", "truncates no intervals"),
    ("SELECT DISTINCT a - b AS x FROM z ORDER BY x LIMIT 2", "another order"),
    (
        "SELECT count(*) OVER (ORDER BY a RANGE BETWEEN interval '24 hours' PRECEDING AND "
        "CURRENT ROW) AS n FROM z",
        "24 hours as a day",
    ),
]


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_what_would_differ_is_refused(sql: str, why: str) -> None:
    with pytest.raises(InvalidDefinition, match=why):
        translate(sql, "postgres", COLUMNS)
