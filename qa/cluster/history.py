"""Stream tables of every kind over three sources, and windows of changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake, StreamTable

QUERIES = {
    "mart.large": "SELECT id, customer, amount FROM sales.orders WHERE amount > 10",
    "mart.joined": "SELECT o.id, c.region, o.amount FROM sales.orders AS o "
    "JOIN sales.customers AS c ON o.customer = c.id",
    "mart.groups": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS least, "
    "MAX(amount) AS most FROM sales.orders GROUP BY customer",
    "mart.ranks": "SELECT id, customer, ROW_NUMBER() OVER w AS n, SUM(amount) OVER w AS running "
    "FROM sales.orders WINDOW w AS (PARTITION BY customer ORDER BY amount, id)",
    "mart.tree": "WITH RECURSIVE below AS (SELECT id, 0 AS depth FROM sales.nodes WHERE parent IS "
    "NULL UNION ALL SELECT n.id, b.depth + 1 FROM sales.nodes AS n JOIN below AS b "
    "ON n.parent = b.id) SELECT id, depth FROM below",
    "mart.distinct": "SELECT DISTINCT customer, amount % 10 AS digit FROM sales.orders",
    "mart.idle": "SELECT id FROM sales.customers EXCEPT SELECT customer FROM sales.orders",
    "mart.top": "SELECT id, amount FROM sales.orders ORDER BY amount DESC, id LIMIT 20",
    "mart.regions": "SELECT c.region, SUM(g.n) AS n FROM sales.customers AS c JOIN (SELECT "
    "customer, COUNT(*) AS n FROM sales.orders GROUP BY customer) AS g ON g.customer = c.id "
    "GROUP BY c.region",
    "mart.shares": "SELECT c.id, c.region, g.total FROM sales.customers AS c LEFT JOIN mart.groups "
    "AS g ON g.customer = c.id",
}
TABLES = [StreamTable(n, q, differential_max_change_ratio=0) for n, q in QUERIES.items()]


def begin(lake: Lake, orders: int) -> None:
    """Make the sources."""
    _write(lake, "sales.customers", [_customer(n) for n in range(orders // 20)])
    _write(lake, "sales.orders", [_order(n, orders // 20) for n in range(orders)])
    _write(lake, "sales.nodes", [_node(n) for n in range(min(orders, 2000))])


def change(lake: Lake, random: Random, window: int, rows: int) -> None:
    """Some rows come, go and change in each source, in several commits."""
    orders = DeltaTable(lake.location("sales.orders"))
    customers = lake.location("sales.customers")
    first = 1_000_000 * (window + 1)
    _write(lake, "sales.orders", [_order(first + n, 1 + random.randrange(3000))
                                  for n in range(rows)])  # fmt: skip
    orders.update_incremental()
    orders.delete(f"id % 997 = {random.randrange(997)}")
    orders.update(updates={"amount": "amount + 1"}, predicate=f"id % 499 = {random.randrange(499)}")
    DeltaTable(customers).update(
        updates={"region": f"'r{window % 5}'"}, predicate=f"id % 53 = {random.randrange(53)}"
    )
    _write(lake, "sales.nodes", [{"id": first + n, "parent": random.randrange(1000)}
                                 for n in range(3)])  # fmt: skip


def _order(number: int, customers: int) -> dict[str, Any]:
    return {"id": number, "customer": number * 7919 % max(customers, 1), "amount": number % 1013}


def _customer(number: int) -> dict[str, Any]:
    return {"id": number, "region": f"r{number % 5}"}


def _node(number: int) -> dict[str, Any]:
    return {"id": number, "parent": (number - 1) // 3 if number else None}


def _write(lake: Lake, name: str, rows: Sequence[dict[str, Any]]) -> None:
    write_deltalake(lake.location(name), pa.Table.from_pylist([*rows]), mode="append")
