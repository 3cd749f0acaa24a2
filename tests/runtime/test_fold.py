"""Folds over windows of one source and of two, whatever their groups are made of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Action, Lake
from runtime.delta import write
from runtime.orders import merge_into, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed

SUMS = "SUM(o.amount) AS total, MIN(o.amount) AS least, COUNT(*) AS n"
JOINED = "FROM orders AS o JOIN customers AS c ON o.customer = c.id"
QUERIES = {
    "a column": f"SELECT o.customer, {SUMS} FROM orders AS o GROUP BY o.customer",
    "renamed": "SELECT k, COUNT(*) AS n FROM (SELECT id AS k, amount AS customer FROM orders "
    "WHERE amount > 1) AS t GROUP BY k",
    "an expression": f"SELECT o.customer % 2 AS odd, {SUMS} FROM orders AS o GROUP BY 1",
    "a string": f"SELECT o.note, {SUMS} FROM orders AS o GROUP BY o.note",
    "of a joined source": f"SELECT o.id, c.id AS customer, {SUMS} {JOINED} GROUP BY o.id, c.id",
    "of the source that moved": f"SELECT o.customer, {SUMS} {JOINED} GROUP BY o.customer",
    "of the other source": f"SELECT c.region, {SUMS} {JOINED} GROUP BY c.region",
    "joined with itself": f"SELECT p.customer, {SUMS} FROM orders AS o JOIN orders AS p "
    "ON o.customer = p.id GROUP BY p.customer",
    "an outer join": f"SELECT o.customer, {SUMS} FROM customers AS c "
    "LEFT JOIN orders AS o ON o.customer = c.id GROUP BY o.customer",
    "of two sources": f"SELECT o.customer, {SUMS} FROM (SELECT * FROM orders UNION ALL "
    "SELECT id, id AS customer, 1 AS amount, region AS note FROM customers) AS o GROUP BY 1",
    "none": f"SELECT {SUMS} FROM orders AS o",
}


@pytest.mark.long
def test_folds_are_exact(lake: Lake) -> None:
    write(lake, "orders", orders(*range(40)))
    write(lake, "customers", _customers(0, 1))
    tables = [maintained(f"mart.t{number}", QUERIES[query]) for number, query in enumerate(QUERIES)]
    each_refreshed(lake, *tables)
    windows = [
        lambda: write(lake, "orders", orders(50, 51, amount=1)),
        lambda: source(lake).delete("id IN (3, 4, 50)"),
        lambda: merge_into(lake, {"customer": "9", "amount": "NULL"}, 5, 7, 8),
        lambda: merge_into(lake, {"customer": "NULL"}, 9, 10),
        lambda: (write(lake, "customers", _customers(9, 2)), source(lake).delete("id < 20")),
    ]
    for change in windows:
        change()
        for table in tables:
            assert refreshed(lake, table).action in (Action.DIFFERENTIAL, Action.NO_DATA)


def _customers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "region": [f"note {i % 2}" for i in ids]})
