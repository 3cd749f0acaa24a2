"""Names, types and partitions come out as they went in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.compiler.text.output_names import is_storable
from dagster_streamtables.runtime.delta.quote import spark_name
from runtime.delta import FEED, write
from runtime.orders import TOTALS, orders, source
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed

pytestmark = pytest.mark.long


ODD_NAMES = (
    *("{a", "$cost", ":c", "@who", "{0}", "${e}", "a;b", "odd@after", " lead", "1st", "_u", "#h"),
    *("it's", '"quoted"', "select", "日本", "--c", "/*c*/", "a\\b", "a,b", "x=y", "(z)", "%s"),
)


def test_names_that_need_quotes(lake: Lake) -> None:
    odd = {"two words": ["x", "y"], "Order": [1, 2], "a.b": [1, None], "tick`s": ["p", "q"]}
    odd |= {name: [1, 2] for name in ODD_NAMES}
    write(lake, "odd", pa.table(odd))
    table = maintained(
        "t",
        "SELECT `two words` AS words, `Order`, SUM(`a.b`) AS `select`, MAX(`$cost`) AS `$`, "
        "COUNT(`{a`) AS `:n` FROM odd WHERE `@who` < 9 GROUP BY 1, 2",
    )
    # A stored table may have those that Spark writes without a mapping.
    unstorable = ", ".join(spark_name(name) for name in odd if not is_storable(name))
    bag = maintained("b", f"SELECT * EXCEPT ({unstorable}) FROM odd WHERE `Order` > 1")
    each_refreshed(lake, table, bag)
    DeltaTable(lake.location("odd")).delete("\"two words\" = 'x'")
    write(lake, "odd", pa.table({name: values[1:] for name, values in odd.items()}))
    each_followed(lake, table, bag)


def test_columns_that_the_query_spells_otherwise(lake: Lake) -> None:
    write(
        lake, "names", pa.table({"Customer": pa.array([0, 1, None], pa.int64()), "NAME": [*"abc"]})
    )
    joined = maintained(
        "j", "SELECT o.ID, n.name FROM orders AS o JOIN names AS n ON o.CUSTOMER = n.customer"
    )
    refreshed(lake, joined)
    write(lake, "orders", orders(30, 31, 32))
    assert refreshed(lake, joined).action is Action.DIFFERENTIAL
    write(lake, "names", pa.table({"Customer": pa.array([2], pa.int64()), "NAME": ["d"]}))
    assert refreshed(lake, joined).action is Action.DIFFERENTIAL


def test_types_keep_their_values_through_both_writers(spark: SparkSession, lake: Lake) -> None:
    place = lake.location("kinds")
    select = (
        "SELECT CAST(id AS TINYINT) AS tiny, CAST(id AS SMALLINT) AS small, "
        "CAST(id AS DECIMAL(38, 10)) AS wide, CAST(id AS FLOAT) / 3 AS f, "
        "CASE WHEN id % 3 = 0 THEN CAST('NaN' AS DOUBLE) WHEN id % 3 = 1 THEN -0.0D ELSE id END d, "
        "TIMESTAMP '2024-03-31 01:30:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS at, "
        "CAST(TIMESTAMP_NTZ '2024-03-31 01:30:00' AS TIMESTAMP_NTZ) AS local, "
        "DATE '2024-02-29' AS day, CAST('ab' AS BINARY) AS bytes, id % 2 = 0 AS even, "
        "NAMED_STRUCT('x', id, 'y', IF(id > 3, NULL, 'z')) AS pair, ARRAY(id, NULL) AS list "
        "FROM range({start}, {stop})"
    )

    def add(start: int, stop: int) -> None:
        rows = spark.sql(select.format(start=start, stop=stop))
        rows.write.format("delta").mode("append").options(**FEED).save(place)

    add(0, 6)
    bag = maintained("bag", "SELECT * FROM kinds")
    flat = maintained(
        "flat", "SELECT tiny, small, wide, f, d, at, local, day, bytes, even FROM kinds"
    )
    keyed = maintained(
        "keyed",
        "SELECT d, pair.y AS y, SUM(wide) AS wide, AVG(f) AS f, MAX(at) AS at, MIN(list) AS list "
        "FROM kinds GROUP BY d, pair.y",
    )
    each_refreshed(lake, bag, flat, keyed)
    add(6, 9)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE tiny IN (1, 3, 7)")
    each_followed(lake, bag, flat, keyed)


def test_a_partitioned_source(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    rows = orders(*range(12))
    write_deltalake(lake.location("orders"), rows, partition_by=["customer"])
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(40, 41, 42), feed=False)
    assert refreshed(lake, TOTALS).windows["orders"].capture == "appended"
    source(lake).update(predicate="id = 5", updates={"customer": "NULL"})
    assert refreshed(lake, TOTALS).windows["orders"].capture == "snapshots"


def test_the_empty_text_as_a_partition(lake: Lake) -> None:
    """delta-rs writes it into the log, where Spark reads it; its list of files says NULL."""
    place = lake.location("parts")
    write_deltalake(
        place, pa.table({"id": [1, 2, 3], "part": ["", None, "a"]}), partition_by=["part"]
    )
    by_part = maintained("by_part", "SELECT part, COUNT(*) AS n FROM parts GROUP BY part")
    refreshed(lake, by_part)

    write_deltalake(place, pa.table({"id": [4, 5, 6], "part": ["", "", None]}), mode="append")
    assert refreshed(lake, by_part).action is Action.DIFFERENTIAL

    DeltaTable(place).delete("part = ''")
    assert refreshed(lake, by_part).action is Action.DIFFERENTIAL


@pytest.mark.parametrize("nested", ["ids[0]", "ids"], ids=["delta-rs", "Spark"])
def test_a_table_gets_a_column_without_a_time_zone(nested: str, lake: Lake) -> None:
    """Both writers tell Delta, which lets a table have such a column only where it is told."""
    write_deltalake(lake.location("events"), pa.table({"ids": [[1], [2]], "g": [1, 1]}))
    before = f"SELECT {nested} AS ids, g FROM events"
    after = f"SELECT {nested} AS ids, TIMESTAMP_NTZ'2020-01-01 00:00:00' AS at FROM events"
    refreshed(lake, StreamTable("seen", before))

    assert refreshed(lake, StreamTable("seen", after)).action is Action.REINITIALIZE
    assert refreshed(lake, StreamTable("seen", after)).action is Action.NO_DATA
