"""All that may happen to a source, at random: rows have no key and many copies."""

from __future__ import annotations

import random

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType

from dagster_streamtables import Lake
from runtime.delta import write

CHANGES = ("insert", "update", "delete", "merge", "overwrite", "optimise", "alter", "vacuum")


def rows(dice: random.Random, count: int) -> pa.Table:
    customers = [dice.choice([1, 2, 3, 4, None]) for _ in range(count)]
    amounts = [dice.choice([1, 2, 3, 4, 5, None]) for _ in range(count)]
    return pa.table(
        {"customer": pa.array(customers, pa.int64()), "amount": pa.array(amounts, pa.int32())}
    )


def change(lake: Lake, dice: random.Random, kind: str) -> None:
    """One statement, or a few, of a writer that is not alone."""
    orders = DeltaTable(lake.location("orders"))
    if kind in ("insert", "alter", "vacuum"):
        write(lake, "orders", rows(dice, 20), schema_mode="merge")
    elif kind == "overwrite":
        write(lake, "orders", rows(dice, 400), mode="overwrite", schema_mode="merge")
    orders.update_incremental()
    if kind == "update":
        which = f"customer = {dice.randint(1, 4)}"
        orders.update(predicate=which, updates={"amount": "amount + 1"})
    elif kind == "delete":
        orders.delete(f"amount = {dice.randint(4, 9)}")
    elif kind == "merge":
        _merge(orders, dice)
    elif kind == "optimise":
        orders.optimize.compact()
    elif kind == "alter":
        _add_column(orders, f"c{dice.randint(0, 3)}")
    elif kind == "vacuum":
        lake.retention.vacuum("orders")


def _merge(orders: DeltaTable, dice: random.Random) -> None:
    source = pa.table({"customer": pa.array([dice.randint(1, 5)], pa.int64())})
    merge = orders.merge(source, "t.customer = s.customer", source_alias="s", target_alias="t")
    merge = merge.when_matched_update({"amount": "t.amount - 1"})
    merge.when_not_matched_insert({"customer": "s.customer", "amount": "3"}).execute()


def _add_column(orders: DeltaTable, name: str) -> None:
    if name not in {field.name for field in orders.schema().fields}:
        orders.alter.add_columns([Field(name, PrimitiveType("string"))])
