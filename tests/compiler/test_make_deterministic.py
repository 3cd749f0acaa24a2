"""Where an order is completed: in the text that both the refresh and the check run."""

from __future__ import annotations

import pytest

from compiler import casefile
from dagster_streamtables.compiler import compile_query

TABLES = {
    "orders": {"id": "bigint", "customer": "bigint", "amount": "bigint"},
    "customers": {"id": "bigint", "region": "string"},
}


@pytest.mark.parametrize(("query", "completed"), casefile.tables("completed_orders.txt")["orders"])
def test_an_order_is_completed_wherever_it_is_written(query: str, completed: str) -> None:
    assert compile_query(query, TABLES).full_text.sql == completed
