"""Where an order is completed: in the text that both the refresh and the check run."""

from __future__ import annotations

import pytest

from dagster_streamtables.compiler import compile_query

TABLES = {
    "orders": {"id": "bigint", "customer": "bigint", "amount": "bigint"},
    "customers": {"id": "bigint", "region": "string"},
}
OWN = "`orders`.`id`"


@pytest.mark.parametrize(
    ("query", "completed"),
    [
        ("SELECT id, amount FROM orders ORDER BY 2 DESC LIMIT 1",
         "SELECT id, amount FROM orders ORDER BY 2 DESC, 1 LIMIT 1"),
        ("SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2 LIMIT 1 OFFSET 2",
         "SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2, 1 LIMIT 1 OFFSET 2"),
        ("SELECT id FROM orders ORDER BY CAST(NULL AS INT) OFFSET 2",
         "SELECT id FROM orders ORDER BY CAST(NULL AS INT), 1 OFFSET 2"),
        ("SELECT id FROM (SELECT id FROM orders ORDER BY 1 LIMIT 9) ORDER BY 1 LIMIT 3",
         "SELECT id FROM (SELECT id FROM orders ORDER BY 1 LIMIT 9) ORDER BY 1 LIMIT 3"),
        ("SELECT id FROM orders UNION ALL (SELECT id FROM customers ORDER BY 1 LIMIT 2)",
         "SELECT id FROM orders UNION ALL (SELECT id FROM customers ORDER BY 1 LIMIT 2)"),
        ("SELECT RANK() OVER w AS r FROM orders ORDER BY 1+1 WINDOW w AS (ORDER BY id) LIMIT 2",
         "SELECT RANK() OVER w AS r FROM orders ORDER BY 1+1, 1 WINDOW w AS (ORDER BY id) LIMIT 2"),
        ("SELECT amount AS window FROM orders ORDER BY window LIMIT 1",
         "SELECT amount AS window FROM orders ORDER BY window LIMIT 1"),
        ("SELECT id, amount FROM orders ORDER BY ALL LIMIT 1",
         "SELECT id, amount FROM orders ORDER BY ALL LIMIT 1"),
        ("SELECT id, amount AS `all` FROM orders ORDER BY ALL LIMIT 1",
         "SELECT id, amount AS `all` FROM orders ORDER BY ALL, 1 LIMIT 1"),
        ("SELECT id, ROW_NUMBER() OVER (ORDER BY NULL) AS n FROM orders",
         f"SELECT id, ROW_NUMBER() OVER (ORDER BY NULL, {OWN}) AS n FROM orders"),
        ("SELECT id, LAG(id) OVER (ORDER BY (SELECT NULL)) AS n FROM orders",
         f"SELECT id, LAG(id) OVER (ORDER BY (SELECT NULL), {OWN}) AS n FROM orders"),
        ("SELECT id, NTILE(2) OVER w AS n FROM orders WINDOW w AS (ORDER BY TRUE)",
         f"SELECT id, NTILE(2) OVER w AS n FROM orders WINDOW w AS (ORDER BY TRUE, {OWN})"),
        ("SELECT SUM(id) OVER (ORDER BY NULL ROWS 1 PRECEDING) AS n FROM orders",
         f"SELECT SUM(id) OVER (ORDER BY NULL , {OWN} ROWS 1 PRECEDING) AS n FROM orders"),
        ("FROM orders |> LIMIT 2 |> SELECT id",
         "FROM orders |> ORDER BY 1, 2, 3 |> LIMIT 2 |> SELECT id"),
        ("FROM orders |> /* two */ LIMIT 2",
         "FROM orders |> /* two */ ORDER BY 1, 2, 3 |> LIMIT 2"),
        ("FROM orders |> ORDER BY amount |> OFFSET 1 |> LIMIT 1",
         "FROM orders |> ORDER BY amount, 1, 2 |> OFFSET 1 |> LIMIT 1"),
        ("FROM orders |> WHERE id > 1 ORDER BY amount LIMIT 1",
         "FROM orders |> WHERE id > 1 ORDER BY amount, 1, 2 LIMIT 1"),
        ("SELECT id FROM (SELECT id, 1 AS limit FROM orders) ORDER BY limit LIMIT 1",
         "SELECT id FROM (SELECT id, 1 AS limit FROM orders) ORDER BY limit, 1 LIMIT 1"),
        ("SELECT id, o.offset FROM (SELECT id, 1 AS offset FROM orders) AS o ORDER BY o.offset + 1 "
         "OFFSET 1",
         "SELECT id, o.offset FROM (SELECT id, 1 AS offset FROM orders) AS o ORDER BY o.offset + 1"
         ", 1, 2 OFFSET 1"),
        ("SELECT id FROM (SELECT id, 1 AS fetch FROM orders) ORDER BY `fetch` LIMIT 1",
         "SELECT id FROM (SELECT id, 1 AS fetch FROM orders) ORDER BY `fetch`, 1 LIMIT 1"),
        ("SELECT id FROM orders ORDER BY 2 * id LIMIT 1",
         "SELECT id FROM orders ORDER BY 2 * id, 1 LIMIT 1"),
        ("SELECT id FROM orders ORDER BY array(amount)::ARRAY<BIGINT> LIMIT 1",
         "SELECT id FROM orders ORDER BY array(amount)::ARRAY<BIGINT>, 1 LIMIT 1"),
        ("FROM orders SELECT * ORDER BY amount LIMIT 1",
         "FROM orders SELECT * ORDER BY amount, 1, 2 LIMIT 1"),
    ],
)  # fmt: skip
def test_an_order_is_completed_wherever_it_is_written(query: str, completed: str) -> None:
    assert compile_query(query, TABLES).full_text.sql == completed
