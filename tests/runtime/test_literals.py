"""What stands between quotes is data: no name in it is bound, and no time is told to it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Action, Lake
from runtime.delta import run_on_delta, stored, write
from runtime.orders import orders
from runtime.refreshes import maintained, refreshed

pytestmark = pytest.mark.long

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
