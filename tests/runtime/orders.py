"""The source that most tests of a refresh begin with, and two stream tables over it."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable

from dagster_streamtables import Lake
from dagster_streamtables.runtime.model.table_state import RefreshRecord
from runtime.refreshes import maintained

NOWHERE = "sc://127.0.0.1:1"
"""An address where no Spark answers: what works there starts no Spark job."""

ACCOUNT = RefreshRecord("FULL", "a new table", "FULL", seconds=0.0, until=0.0)
"""For states that a test makes by hand."""

TOTALS = maintained(
    "mart.totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
)
LARGE = maintained("mart.large", "SELECT id, amount FROM orders WHERE amount > 3")


def orders(*ids: int, amount: int = 5) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([i % 3 for i in ids], pa.int64()),
            "amount": pa.array([amount + i % 2 for i in ids], pa.int32()),
            "note": pa.array([f"note {i}" for i in ids]),
        }
    )


def source(lake: Lake) -> DeltaTable:
    return DeltaTable(lake.location("orders"))


def merge_into(lake: Lake, updates: dict[str, str], *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    merge = source(lake).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update(updates).execute()
