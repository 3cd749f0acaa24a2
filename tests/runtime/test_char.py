"""CHAR(n): a file may hold the text without its padding, and whoever reads it sees it padded."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Lake
from runtime.refreshes import each_followed, maintained, refreshed

QUERIES = {
    "bag": "SELECT id, c, part, list FROM t WHERE c = 'ab' OR part.c <> 'ab'",
    "groups": "SELECT c, part.c AS p, COUNT(*) AS n, MAX(v) AS v FROM t GROUP BY c, part.c",
    "both": "SELECT c FROM t UNION ALL SELECT v FROM t UNION ALL SELECT name FROM names",
    "joined": "SELECT t.id, n.name FROM t JOIN names AS n ON t.c = n.code AND t.c IN ('ab', 'cd')",
    "having": "SELECT g.c, g.n FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c) AS g "
    "WHERE g.c = 'ab'",
}


@pytest.mark.long
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "files"])
def test_what_came_is_seen_as_its_readers_see_it(
    feed: bool, spark: SparkSession, lake: Lake
) -> None:
    t, people = (f"delta.`{lake.location(name)}`" for name in ("t", "names"))
    spark.sql(
        f"CREATE TABLE {t} (id INT, c CHAR(5), v VARCHAR(9), part STRUCT<c: CHAR(4)>, "
        f"list ARRAY<CHAR(3)>) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = {feed})"
    )
    spark.sql(f"CREATE TABLE {people} (code CHAR(7), name STRING) USING delta")
    spark.sql(f"INSERT INTO {people} VALUES ('ab', 'a name of many letters'), ('cd', 'cd')")
    rows = "('ab', 'ab', STRUCT('ab'), ARRAY('a')), ('cd', 'x ', STRUCT('cd'), ARRAY())"

    def add(*ids: int) -> None:
        spark.sql(f"INSERT INTO {t} SELECT id, v.* FROM VALUES {rows} AS v "
                  f"CROSS JOIN (SELECT explode(ARRAY{ids}) AS id)")  # fmt: skip

    add(1, 2)
    tables = [maintained(n, QUERIES[n]) for n in QUERIES]
    for table in tables:
        refreshed(lake, table)
        assert "CHAR" not in DeltaTable(lake.location(table.name)).schema().to_json()
    add(3, 4)
    spark.sql(f"DELETE FROM {t} WHERE id = 1")
    each_followed(lake, *tables)
