"""-0.0 and 0.0: equal to SQL, two values to a reader, who must find the one of the query."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from dagster_streamtables import Action, Lake, StreamTable
from named_rows import NamedRows
from runtime.delta import append_by_spark, on_spark, views
from runtime.refreshes import each_refreshed, maintained, refreshed

FLAT = maintained("flat", "SELECT id, x, CAST(x AS STRING) AS shown FROM t")
DEEP = maintained("deep", "SELECT id, x, deep FROM t")
ONCE = maintained(
    "once",
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x UNION ALL "
    "SELECT x, 1 AS n FROM (SELECT DISTINCT x FROM t)",
)
ROWS = (
    "SELECT CAST(id AS INT) AS id, x, NAMED_STRUCT('list', ARRAY(x)) AS deep FROM (SELECT id, "
    "CAST(ELT(1 + id % 4, '-0.0', '0.0', 'NaN', '1.5') AS DOUBLE) AS x FROM range({0}, {1}))"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("driver_rows", "feed", "tables"),
    [
        pytest.param(0, False, (DEEP,), id="spark"),
        pytest.param(0, False, (FLAT, ONCE), id="spark, flat"),
        pytest.param(None, False, (FLAT, DEEP, ONCE), id="files"),
        pytest.param(None, True, (FLAT,), id="feed, flat"),
        pytest.param(None, True, (DEEP,), id="feed, deep"),
        pytest.param(None, True, (ONCE,), id="feed, once"),
    ],
)
def test_both_zeros_stay_what_they_are(
    feed: bool, tables: tuple[StreamTable, ...], lake: Lake
) -> None:
    append_by_spark(lake, "t", ROWS.format(0, 8), feed=feed, alone=True)
    each_refreshed(lake, *tables)
    append_by_spark(lake, "t", ROWS.format(0, 2), alone=True)  # copies
    on_spark(lake, "DELETE FROM {t} WHERE id IN (4, 5)")
    on_spark(lake, "UPDATE {t} SET x = -x WHERE id IN (1, 3)")
    for table in tables:
        assert lake.refresh(table).action is Action.DIFFERENTIAL
        assert _seen(lake.read(table.name)) == _seen(views(lake, "t").sql(table.query))
        assert lake.check(table).equal


def test_rows_that_differ_by_a_zero_alone_keep_their_copies(lake: Lake) -> None:
    """delta-rs joins the two zeros, and counts the copies of both as those of one."""
    both = (
        "SELECT id, k, CAST(ELT(1 + id % 2, '-0.0', '0.0') AS DOUBLE) AS x, "
        "CAST(ELT(1 + id % 3, '-0.0', '0.0', '1.5') AS FLOAT) AS f "
        "FROM range(0, 12) CROSS JOIN (VALUES (1), (NULL)) AS v(k)"
    )
    append_by_spark(lake, "t", both, alone=True)
    bag = maintained("bag", "SELECT k, x, f FROM t")
    lake.refresh(bag)
    for gone in ("id = 2", "id IN (3, 4) AND k IS NULL", "id < 7"):
        on_spark(lake, f"DELETE FROM {{t}} WHERE {gone}")
        refreshed(lake, bag, Action.DIFFERENTIAL, writer="delta-rs")
        assert _seen(lake.read("bag")) == _seen(views(lake, "t").sql(bag.query))


@pytest.mark.long
def test_the_check_sees_a_zero_of_the_wrong_sign(lake: Lake) -> None:
    append_by_spark(lake, "t", ROWS.format(0, 4))
    lake.refresh(DEEP)
    on_spark(lake, "UPDATE {deep} SET x = 0.0D WHERE id = 0")
    found = lake.check(DEEP)
    assert (found.equal, found.missing, found.unexpected) == (False, 1, 1)


def _seen(rows: DataFrame) -> NamedRows:
    shown = (f"to_json(struct({name})) AS {name}" for name in rows.columns)
    return NamedRows.of_spark(rows.selectExpr(*shown))
