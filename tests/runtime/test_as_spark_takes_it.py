"""FULL and AUTO take what Spark takes, whatever the compiler thinks of it.

The oracle is plain Spark over views of the tables' names: nothing in the text is exchanged.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from compiler.database import _shown
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.declare.analysis import analyze_tables
from named_rows import NamedRows
from runtime.delta import held, run_on_delta, stored, write
from runtime.orders import orders
from runtime.refreshes import maintained

QUERIES = [
    "SELECT id FROM orders WHERE note LIKE ANY ('%1', '%2') AND note NOT LIKE ALL ('%3', '%4')",
    "FROM orders SELECT id, amount WHERE id > 2",
    "((SELECT id FROM orders) INTERSECT (SELECT id FROM customers)) ORDER BY id LIMIT 2",
    "FROM orders |> WHERE id > 3 |> AGGREGATE SUM(amount) AS s GROUP BY customer",
    "FROM orders |> AS o |> JOIN customers ON o.customer = customers.id |> SELECT o.id, name"
    " |> UNION ALL TABLE customers",
    "TABLE customers UNION ALL SELECT id, note FROM orders -- all of them",
    "SELECT * FROM (SELECT customer, amount, id FROM orders) "
    "PIVOT (SUM(amount) FOR customer IN (0 AS a, 1 AS b))",
    "SELECT * FROM (SELECT id, customer, amount + 0L AS amount FROM orders) "
    "UNPIVOT (v FOR k IN (customer, amount))",
    "SELECT orders.id, t FROM orders TABLESAMPLE (100 PERCENT) LATERAL VIEW posexplode(tags) x"
    " AS p, t",
    "SELECT v.a, o.id FROM VALUES (1, 'a'), (2, 'b') AS v(a, b), orders AS o WHERE o.id = v.a",
    "SELECT window.start AS s, COUNT(*) AS n FROM orders GROUP BY window(seen, '10 minutes')",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 20 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE "
    "n < 10) SELECT n, id FROM r JOIN orders ON id = n",
    "SELECT IDENTIFIER('id') FROM IDENTIFIER('orders')",
    "SELECT /*+ BROADCAST(customers) */ * EXCEPT (note, tags, name) FROM orders "
    "NATURAL JOIN (customers)",
    "SELECT note COLLATE UTF8_LCASE = 'NOTE 1' AS n, COUNT(*) AS c FROM orders GROUP BY ALL",
    "SELECT id, user() = session_user AS u FROM orders MINUS SELECT id, true FROM customers",
]


@pytest.fixture
def tables(spark: SparkSession, lake: Lake) -> Lake:
    tags = pa.array([[1, 2], [], None, [3]] * 5, pa.list_(pa.int64()))
    seen = pa.array([i * 60_000_000 for i in range(20)], pa.timestamp("us", "UTC"))
    rows = orders(*range(20)).append_column("tags", tags).append_column("seen", seen)
    write(lake, "orders", rows, mode="overwrite", schema_mode="overwrite")
    write(lake, "customers", pa.table({"id": [0, 1, 2], "name": ["a", "b", "c"]}))
    return lake


def answer(spark: SparkSession, lake: Lake, query: str) -> NamedRows:
    for name in ("orders", "customers"):
        spark.read.format("delta").load(lake.location(name)).createOrReplaceTempView(name)
    try:
        return NamedRows.of_arrow(spark.sql(query).toArrow(), _shown)
    finally:
        for name in ("orders", "customers"):
            spark.catalog.dropTempView(name)


def declared(lake: Lake, mode: str, queries: list[str]) -> list[StreamTable]:
    tables = [StreamTable(f"t{i}", query, mode=mode) for i, query in enumerate(queries)]
    assert [each.error for each in analyze_tables(tables, lake)] == [None] * len(tables)
    return tables


@pytest.mark.long
def test_a_full_refresh_gives_what_spark_answers(spark: SparkSession, tables: Lake) -> None:
    for table in declared(tables, "FULL", QUERIES):
        tables.refresh(table)
        assert held(tables, table.name) == answer(spark, tables, table.query), table.query


@pytest.mark.parametrize("step", [6, pytest.param(2, marks=pytest.mark.long)])
def test_what_the_compiler_cannot_read_is_followed_in_auto(
    step: int, spark: SparkSession, tables: Lake
) -> None:
    followed = declared(tables, "AUTO", QUERIES[:6:step])
    for table in followed:
        tables.refresh(table)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    for table in followed:
        tables.refresh(table)
        assert held(tables, table.name) == answer(spark, tables, table.query), table.query
        assert tables.check(table).equal


def test_a_query_that_reads_no_table_is_made_once(lake: Lake) -> None:
    table = StreamTable("few", "VALUES (1, 'a'), (2, 'b')", mode="FULL")
    lake.refresh(table)
    assert stored(lake, "few", ["col1", "col2"]) == {("1", "a"): 1, ("2", "b"): 1}
    assert lake.refresh(table).action is Action.NO_DATA


PIPES = [
    *QUERIES[3:5],
    "FROM orders |> WHERE id > 2 |> WHERE id = 3 OR id > 4 |> LEFT JOIN customers AS c "
    "ON orders.customer = c.id |> SELECT orders.id, c.name",
    "FROM orders |> SELECT id, amount |> EXTEND amount * 2 AS twice, twice + 1 AS more "
    "|> DROP amount, twice |> WHERE orders.id > 1",
    "FROM orders |> SELECT id, amount |> ORDER BY amount DESC, id |> LIMIT 3 |> SELECT id AS i",
    "FROM orders |> SELECT id |> ORDER BY id |> OFFSET 2 |> LIMIT 3 |> WHERE id > 3",
    "SELECT id FROM orders UNION ALL SELECT id FROM customers |> WHERE id > 1 "
    "|> EXCEPT (FROM orders |> SELECT customer) |> AS t |> SELECT t.id AS n",
    "WITH l AS (FROM orders |> WHERE amount > 5) FROM l AS x |> WHERE x.customer IN "
    "(FROM customers |> WHERE name > 'a' |> SELECT id) |> SELECT x.id",
    "FROM orders |> SELECT id, SUM(amount) OVER w AS s WINDOW w AS (PARTITION BY customer "
    "ORDER BY id) |> WHERE s > 5",
    "FROM orders |> SELECT customer, amount "
    "|> PIVOT (SUM(amount) FOR customer IN (0 AS a, 1 AS b)) |> WHERE a > 1",
    "FROM orders |> AGGREGATE MAX(id) AS m, SUM(amount) + customer AS s "
    "GROUP BY customer, amount % 2 AS odd |> SELECT customer, odd, m, s",
    "FROM orders |> AGGREGATE GROUP BY customer |> AGGREGATE COUNT(*) AS n",
    "FROM orders |> AGGREGATE LISTAGG(note, ',') WITHIN GROUP (ORDER BY note) AS l GROUP BY "
    "customer",
    "FROM orders, customers AS c |> WHERE customer = c.id |> SELECT c.id, note",
    "FROM orders AS o |> SELECT id, amount, customer "
    "|> SET customer = customer + amount, id = customer |> SET AMOUNT = amount * 2 |> WHERE id > 2",
    "WITH a AS (FROM orders |> SELECT id, amount |> SET amount = SUM(amount) OVER ()) FROM a "
    "|> WHERE id > 1 |> ORDER BY id |> LIMIT 3 |> SET id = (SELECT MAX(id) FROM customers)",
    "FROM orders |> SELECT id, customer, amount "
    "|> AGGREGATE SUM(amount) AS s GROUP BY 2, id % 2 AS odd",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> WHERE c.name <> 'b' "
    "|> EXTEND o.amount * 2 AS twice, twice + 1 AS more |> WHERE more > 5 "
    "|> AGGREGATE SUM(twice - 1) AS s, COUNT(*) AS n GROUP BY c.name, o.id % 2 AS odd "
    "|> WHERE c.name > 'A' |> JOIN customers AS d ON d.name = c.name "
    "|> SELECT c.name, odd, s, d.id",
    "FROM orders AS o, customers AS c |> WHERE o.customer = c.id |> ORDER BY o.amount "
    "|> SELECT o.id, c.name, c.id AS customer |> WHERE o.id > 1 |> EXCEPT SELECT 5, 'a', 1 "
    "|> WHERE c.name < 'z' AND o.id < 18",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> WHERE o.amount > 2 "
    "|> LEFT JOIN customers AS d ON d.id = o.id |> EXTEND d.name AS other |> SELECT *, 1 AS one "
    "|> SELECT other, one, note",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> EXTEND o.amount AS size "
    "|> WHERE EXISTS (SELECT 1 FROM customers AS e WHERE size > 3) |> SELECT size, note",
    "FROM orders AS o JOIN customers AS c USING (id) |> EXTEND UPPER(c.name) AS up, o.amount AS a "
    "|> ORDER BY up DESC, o.id |> LIMIT 2 |> SELECT id, up, a",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> ORDER BY o.amount, o.id "
    "|> LIMIT 9 |> WHERE EXISTS (SELECT 1 FROM customers AS e WHERE e.id <= c.id) "
    "|> SELECT o.tags, c.id, c.name, to_json(struct(c.*)) AS j, hash(*) AS h",
    "FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> DROP note "
    "|> SET amount = o.amount * 2, name = upper(name) |> SELECT o.id, amount, name, c.id AS cid",
    "FROM customers AS c LEFT JOIN (SELECT id, customer, amount FROM orders) AS o "
    "ON o.customer = c.id |> UNION SELECT 1, 'b', 2, 3, 4 "
    "|> WHERE o.amount > 2 |> AGGREGATE COUNT(*) AS n, COUNT(o.id) AS k GROUP BY c.name",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id "
    "|> EXTEND RANK() OVER (PARTITION BY c.id ORDER BY o.amount, o.id) AS r |> WHERE r < 3 "
    "|> LEFT JOIN customers AS d ON d.id = o.id |> SELECT r, o.id, c.name, d.name AS other",
    "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> AGGREGATE COUNT(*) AS n "
    "GROUP BY 1, c.name",
    "SELECT c.name, v.b, o.id FROM customers AS c JOIN (VALUES (1, 'x'), (2, 'y') AS v(a, b) "
    "JOIN orders AS o ON o.id > v.a) ON o.customer = c.id",
    "SELECT name, hash(*) AS h, hash(x.* EXCEPT (name)) AS k FROM (SELECT * FROM orders AS o "
    "JOIN customers AS c ON o.customer = c.id) AS x",
    "SELECT customer, COUNT(* EXCEPT (id)) AS n, COUNT(*, id) AS m FROM orders GROUP BY customer",
    "SELECT customer, explode(array(1, COUNT(amount))) AS e, SUM(COUNT(amount)) OVER () AS every "
    "FROM orders GROUP BY customer QUALIFY COUNT(*) OVER (PARTITION BY e) > 1 OR every > 9",
    "SELECT region, amount FROM (SELECT *, name AS region FROM orders AS o "
    "JOIN customers AS c ON o.customer = c.id) AS x WHERE amount > 2",
    "SELECT id, hash(*) AS h, to_json(struct(orders.*)) AS j FROM orders WHERE hash(*) <> 1",
    "WITH w AS (SELECT struct(* EXCEPT (id, tags), 1 AS one) AS s FROM orders) SELECT w.s.* FROM w",
    "WITH W AS (SELECT * FROM ((orders)) AS o) SELECT t.name, u.name AS other, w.Id "
    "FROM (orders AS o JOIN customers AS c ON o.customer = c.id) AS t LEFT JOIN ((customers)) AS u "
    "ON u.id = t.amount JOIN (((SELECT id FROM w))) AS w ON w.id = t.amount",
    "SELECT id FROM orders WHERE id NOT IN ((SELECT id FROM customers WHERE name = 'z')) "
    "AND EXISTS ((SELECT 1 FROM customers WHERE id = 1))",
    "FROM orders SELECT * EXCEPT (tags, seen), customer + 1 AS more",
    "SELECT id, 1 | amount << 1 AS a, '1' || id + 1 AS b, amount & 6 | 1 ^ 3 AS c, id >>> 1 AS d "
    "FROM orders",
    "SELECT customer, size(collect_list(struct(*))) AS n FROM orders GROUP BY customer",
    "SELECT /*+ REPARTITION(3) */ customer, COUNT(*) AS n FROM orders WHERE id !> 9 AND id !< 1 "
    'GROUP -- "by\nBY customer HAVING MIN(note) IS /* `x */ NOT /**/ NULL',
]


@pytest.mark.long
@pytest.mark.parametrize("query", PIPES)
def test_a_pipe_is_maintained_as_what_spark_answers(
    query: str, spark: SparkSession, tables: Lake
) -> None:
    table = maintained("piped", query)
    assert tables.refresh(table).action is Action.REINITIALIZE
    assert held(tables, "piped") == answer(spark, tables, query)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    run_on_delta(tables, "UPDATE customers SET name = 'z' WHERE id = 1")
    done = tables.refresh(table)
    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), done
    assert held(tables, "piped") == answer(spark, tables, query)
    assert tables.check(table).equal


@pytest.mark.long
def test_a_key_by_number_follows_the_order_of_the_columns(
    spark: SparkSession, tables: Lake
) -> None:
    """It counts columns that the query does not read, too."""
    query = "FROM orders |> AGGREGATE COUNT(*) AS n GROUP BY 2 |> SELECT n"
    table = maintained("piped", query)
    tables.refresh(table)
    run_on_delta(tables, "DELETE FROM orders WHERE id = 1")
    assert tables.refresh(table).action is Action.DIFFERENTIAL
    assert tables.check(table).equal
    there = f"delta.`{tables.location('orders')}`"
    [*_, last] = tables.columns("orders") or {}
    spark.sql(f"ALTER TABLE {there} ALTER COLUMN {last} FIRST")
    run_on_delta(tables, "DELETE FROM orders WHERE id = 2")
    assert tables.refresh(table).action is Action.REINITIALIZE
    assert held(tables, "piped") == answer(spark, tables, query)
    assert tables.check(table).equal
