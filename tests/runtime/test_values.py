"""Names, types and partitions come out as they went in, and so do literals.

What stands between quotes is data: no name in it is bound, and no time is told to it.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.compiler.analyze.output_names import is_storable
from dagster_streamtables.runtime.delta.table_schema import spark_name
from runtime.delta import append_by_spark, on_spark, run_on_delta, stored, write
from runtime.orders import TOTALS, orders, source
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import no_orders

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


def test_types_keep_their_values_through_both_writers(lake: Lake) -> None:
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

    append_by_spark(lake, "kinds", select.format(start=0, stop=6), feed=True)
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
    append_by_spark(lake, "kinds", select.format(start=6, stop=9))
    on_spark(lake, "DELETE FROM {kinds} WHERE tiny IN (1, 3, 7)")
    each_followed(lake, bag, flat, keyed)


@no_orders
def test_a_partitioned_source(lake: Lake) -> None:
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


# Each literal looks like what a plan or a text writes for a relation or for the time.
LITERALS = [
    "`orders@after`",
    "`orders@change`",
    "`mart.odd@before`",
    "`st_now@after`",
    "st_now()",
    "current_date",
    "current_timestamp",
    "now()",
    "FROM orders",
    "{orders} {{x}} {0}",
]


@pytest.mark.parametrize("clock", ["", "WHERE seen < now()"], ids=["still", "timed"])
def test_a_literal_stays_as_it_is(lake: Lake, clock: str) -> None:
    seen = pa.array([0] * 3, pa.timestamp("us", "UTC"))
    write(lake, "orders", orders(1, 2, 3).append_column("seen", seen), mode="overwrite",
          schema_mode="overwrite")  # fmt: skip
    outputs = ", ".join(f"'{literal}' AS c{i}" for i, literal in enumerate(LITERALS))
    table = maintained("mart.odd", f"SELECT id, {outputs} FROM orders {clock}")
    refreshed(lake, table)
    run_on_delta(lake, "INSERT INTO orders SELECT id + 3, customer, amount, note, seen "
                              "FROM orders")  # fmt: skip
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    columns = [f"c{i}" for i in range(len(LITERALS))]
    assert stored(lake, "mart.odd", columns) == {tuple(LITERALS): 6}


def test_quotes_inside_of_texts(lake: Lake) -> None:
    """Two quotes are one, as in every SQL; two texts side by side are one text."""
    write(lake, "names", pa.table({"name": ["O'Brien", "OBrien", "it's", "its"]}))
    outputs = ", ".join(
        ["'it''s' AS a", '"say ""x""" AS b', "'a' 'b' AS c", "'a" + "\\" + "'''b' AS d"]
    )
    query = f"SELECT name, {outputs} FROM names WHERE name = 'O''Brien' OR name LIKE '%''s'"
    table = maintained("mart.quoted", query)
    refreshed(lake, table)
    write(lake, "names", pa.table({"name": ["O'Brien", "OBrien", "Jill's", "Jills"]}))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    found = stored(lake, "mart.quoted", ["name", "a", "b", "c", "d"])
    assert found == {
        (name, "it's", 'say "x"', "ab", "a''b"): n
        for name, n in (("O'Brien", 2), ("it's", 1), ("Jill's", 1))
    }


def test_a_column_may_be_called_like_a_relation_or_like_the_time(lake: Lake) -> None:
    names = [
        "`orders@after`",
        "`st_now@after`",
        "`st_now`",
        "`now`",
        "`current_date`",
        "`Net Sales`",
    ]
    rows = orders(1, 2, 3)
    for i, name in enumerate(names):
        rows = rows.append_column(name.strip("`"), pa.array([i] * 3, pa.int64()))
    write(lake, "orders", rows, mode="overwrite", schema_mode="overwrite")
    columns = ", ".join(f"o.{name}" for name in names[:-1]) + f", o.{names[-1]} AS net_sales"
    table = maintained("mart.odd", f"SELECT o.id, {columns} FROM orders AS o")
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE orders SET id = 4 WHERE id = 3")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


KEYS = [
    "DATE '2024-01-01' + int(customer)",
    "IF(DATE '2024-01-01' + int(customer) > DATE '2024-01-02', 'a', 'b')",
    "id::int % 2, amount :: string || 'x'",
    "nvl(customer, 0), `orders`.`amount` > 5",
    "ROLLUP (timestampadd(DAY, int(customer), TIMESTAMP '2024-01-01 00:00:00'), amount % 2)",
    "GROUPING SETS ((extract(DAY FROM DATE '2024-01-01' + int(customer))), ())",
]


@pytest.mark.parametrize("keys", KEYS)
def test_a_key_that_is_not_returned_may_be_any_expression(lake: Lake, keys: str) -> None:
    query = f"SELECT COUNT(*) AS n, SUM(orders.amount) AS total FROM orders GROUP BY {keys}"
    table = maintained("mart.groups", query)
    assert refreshed(lake, table).action is Action.REINITIALIZE
    write(lake, "orders", orders(*range(20, 24)))

    assert refreshed(lake, table).action is Action.DIFFERENTIAL
