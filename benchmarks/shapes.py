"""The five queries of the benchmark, and what a good engineer would write by hand for each.

The hand-written refresh reads the Change Data Feed of the window and merges it into a table of its
own with Spark's MERGE: by key where rows have one, additively where they are groups.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    name: str
    query: str
    target: str
    """The query that fills the hand-maintained table."""
    merge: str
    """The hand-written refresh of `{target}` from the newest rows `{last}` of each changed order,
    and from all signed changes `{signed}`."""

    @property
    def file(self) -> str:
        return self.name.replace(" + ", "_")


_UPSERT = (
    "MERGE INTO {target} t USING ({rows}) s ON t.id = s.id "
    "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED AND NOT s.gone THEN INSERT *"
)

SHAPES = [
    Shape(
        "scan",
        "SELECT id, customer, amount * 2 AS twice FROM orders",
        "SELECT id, customer, amount * 2 AS twice, false AS gone FROM {orders}",
        _UPSERT.replace("{rows}", "SELECT id, customer, amount * 2 AS twice, gone FROM {last}"),
    ),
    Shape(
        "filter",
        "SELECT id, customer, amount FROM orders WHERE amount > 800",
        "SELECT id, customer, amount, false AS gone FROM {orders} WHERE amount > 800",
        _UPSERT.replace(
            "{rows}", "SELECT id, customer, amount, gone OR amount <= 800 AS gone FROM {last}"
        ),
    ),
    Shape(
        "aggregate",
        "SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer",
        "SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM {orders} GROUP BY customer",
        "MERGE INTO {target} t USING (SELECT customer, SUM(w * amount) AS total, SUM(w) AS n "
        "FROM {signed} GROUP BY customer) s ON t.customer = s.customer "
        "WHEN MATCHED AND t.n + s.n = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET total = t.total + s.total, n = t.n + s.n "
        "WHEN NOT MATCHED THEN INSERT *",
    ),
    Shape(
        "join",
        "SELECT o.id, c.region, o.amount FROM orders AS o JOIN customers AS c ON o.customer = c.id",
        "SELECT o.id, c.region, o.amount, false AS gone "
        "FROM {orders} AS o JOIN {customers} AS c ON o.customer = c.id",
        _UPSERT.replace(
            "{rows}",
            "SELECT o.id, c.region, o.amount, o.gone FROM {last} AS o "
            "JOIN {customers} AS c ON o.customer = c.id",
        ),
    ),
    Shape(
        "join + aggregate",
        "SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS n "
        "FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.region",
        "SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS n "
        "FROM {orders} AS o JOIN {customers} AS c ON o.customer = c.id GROUP BY c.region",
        "MERGE INTO {target} t USING (SELECT c.region, SUM(o.w * o.amount) AS total, SUM(o.w) AS n "
        "FROM {signed} o JOIN {customers} c ON o.customer = c.id GROUP BY c.region) s "
        "ON t.region = s.region "
        "WHEN MATCHED THEN UPDATE SET total = t.total + s.total, n = t.n + s.n "
        "WHEN NOT MATCHED THEN INSERT *",
    ),
]
