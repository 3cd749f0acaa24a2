"""CHAR(n): a file may hold the text without its padding, and whoever reads it sees it padded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, StreamTable
from runtime.delta import refreshed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUERIES = {
    "bag": "SELECT id, c, part, list FROM t WHERE c = 'ab' OR part.c <> 'ab'",
    "groups": "SELECT c, part.c AS p, COUNT(*) AS n, MAX(v) AS v FROM t GROUP BY c, part.c",
    "both": "SELECT c FROM t UNION ALL SELECT v FROM t UNION ALL SELECT name FROM names",
    "joined": "SELECT t.id, n.name FROM t JOIN names AS n ON t.c = n.code AND t.c IN ('ab', 'cd')",
    "having": "SELECT g.c, g.n FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c) AS g "
    "WHERE g.c = 'ab'",
}


@pytest.mark.long
@pytest.mark.parametrize("feed", ["true", "false"], ids=["feed", "files"])
def test_what_came_is_seen_as_its_readers_see_it(
    feed: str, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
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
    tables = [StreamTable(n, QUERIES[n], differential_max_change_ratio=0) for n in QUERIES]
    for table in tables:
        refreshed(lake, table)
        assert "CHAR" not in DeltaTable(lake.location(table.name)).schema().to_json()
    add(3, 4)
    spark.sql(f"DELETE FROM {t} WHERE id = 1")
    for table in tables:
        assert refreshed(lake, table).action is Action.DIFFERENTIAL
