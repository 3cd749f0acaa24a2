"""Checks of stored tables that are right, damaged, behind, and no longer as their definition."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.checks import comparison
from dagster_streamtables.runtime.checks.lake_checks import Drift, DriftKind
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable

ROWS = 20_000
GROUPS = StreamTable(
    "totals",
    "SELECT customer, SUM(amount) AS total, AVG(price) AS mean FROM orders GROUP BY customer",
)
BAG = StreamTable("paid", "SELECT id, price * 1.1 AS more FROM orders WHERE amount >= 0")
# A group below the root is an intermediate table.
ABOVE = StreamTable(
    "most", "SELECT MAX(n) AS most FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1)"
)


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    lake = Lake(tmp_path, spark=spark)
    add(lake, 0, ROWS)
    return lake


def add(lake: Lake, begin: int, count: int, **more: list[Any]) -> None:
    ids = range(begin, begin + count)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "customer": pa.array([i % 5_000 for i in ids], pa.int64()),
        "amount": pa.array([i % 7 for i in ids], pa.int32()),
        "price": pa.array([i / 3 for i in ids], pa.float64()),
    }
    schema_mode = "merge" if more else None
    rows = pa.table({**columns, **more})
    write_deltalake(lake.location("orders"), rows, mode="append", schema_mode=schema_mode)


def delta(lake: Lake, name: str) -> DeltaTable:
    return DeltaTable(lake.location(name))


def replace_rows(lake: Lake, name: str, rows: pa.Table) -> None:
    write_deltalake(delta(lake, name), rows, mode="overwrite", schema_mode="overwrite")


@pytest.mark.long
@pytest.mark.parametrize("table", [GROUPS, BAG], ids=["groups", "bag"])
def test_a_part_is_compared_and_can_be_compared_again(table: StreamTable, lake: Lake) -> None:
    lake.refresh(table)
    found = lake.check(table, sample=0.3)
    assert found.equal
    assert found.part is not None and found.part.fraction == 0.3
    assert found.part.columns == (("customer",) if table is GROUPS else ("id",))

    key = found.part.columns[0]
    delta(lake, table.name).delete(f"{key} < 1000")
    found = [lake.check(table, sample=0.3, seed=seed) for seed in (1, 1, 2)]
    assert not any(each.equal for each in found)
    assert found[0].missing == found[1].missing
    assert 200 < found[0].missing < 400
    shown = [{row[key] for row in each.sample} for each in found]
    assert shown[0] == shown[1]
    assert [each.part.seed for each in found if each.part] == [1, 1, 2]
    # Together, parts of other seeds reach rows that one does not.
    assert lake.check(table).missing == 1000


PAIRS = StreamTable("pairs", "SELECT id, customer, amount, struct(id, customer) AS s FROM orders")


@pytest.mark.parametrize("sample", [None, 0.3], ids=["all rows", "a sample"])
@pytest.mark.parametrize("many", [False, True], ids=["compared here", "compared in Spark"])
def test_columns_that_are_swapped_in_the_table_are_found(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, sample: float | None, many: bool
) -> None:
    """Rows that agree by place only: the values of two columns stand under each other's names."""
    if many:
        monkeypatch.setattr(comparison, "SMALL", 0)
    lake.refresh(PAIRS)
    assert lake.check(PAIRS, sample=sample).equal
    stored = pa.table(delta(lake, "pairs").to_pyarrow_table())
    names = ["customer", "id", "amount", "s"]
    swapped = stored.rename_columns(names)
    for order in (names, stored.column_names):
        replace_rows(lake, "pairs", swapped.select(order))
        found = lake.check(PAIRS, sample=sample)
        assert not found.equal and not found.columns
        assert found.missing > 1_000 and found.unexpected > 1_000
        assert {row["__difference"] for row in found.sample} <= {"missing", "unexpected"}
    replace_rows(lake, "pairs", stored.select(names))
    assert lake.check(PAIRS, sample=sample).equal, "another order of the columns is no difference"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id AS Id, customer, amount, struct(id, customer) AS s FROM orders",
         'the query returns the column "Id", and the table has "id" instead'),
        ("SELECT id, customer, amount, struct(id AS x, customer) AS s FROM orders",
         'the query returns the column "s<x, customer>", and the table has "s<id, customer>" '
         "instead"),
        ("SELECT id, customer, amount, struct(customer, id) AS s FROM orders",
         'the query returns the column "s<customer, id>", and the table has "s<id, customer>" '
         "instead"),
        ("SELECT *, struct(id, customer) AS s FROM orders",
         'the table lacks the column "price"'),
        ("SELECT id, customer, amount FROM orders",
         'the query returns no column "s<id, customer>"'),
    ],
    ids=["letter case", "field", "order of fields", "missing", "unexpected"],
)  # fmt: skip
def test_names_that_differ_are_a_difference(lake: Lake, query: str, said: str) -> None:
    lake.refresh(PAIRS)

    found = lake.check(StreamTable("pairs", query))

    assert not found.equal
    assert (found.missing, found.unexpected, found.sample) == (0, 0, [])
    assert str(found) == f"pairs: {said}"


def test_a_part_of_few_rows_is_all_of_them(lake: Lake) -> None:
    lake.refresh(ABOVE)
    found = lake.check(ABOVE, sample=0.01)
    assert found.equal and found.part is None
    for sample in (0, -1, 1.5):
        with pytest.raises(InvalidDefinition, match="the setting sample is"):
            lake.check(ABOVE, sample=sample)
    with pytest.raises(MissingSource, match="never been refreshed"):
        lake.check(BAG, sample=0.5)


def test_the_filter_of_a_part_is_answered_below_the_groups(lake: Lake, spark: SparkSession) -> None:
    from dagster_streamtables.runtime.checks.comparison import SampledRows

    rows = spark.sql("SELECT id % 5 AS customer, SUM(id) AS total FROM range(100) GROUP BY 1")
    part = SampledRows(0.5, 7, ("customer",)).of(rows, {"customer": "bigint"})
    plan = part._explain_string() if hasattr(part, "_explain_string") else ""
    lines = plan.splitlines()
    filters = [n for n, line in enumerate(lines) if "Filter" in line]
    groups = [n for n, line in enumerate(lines) if "HashAggregate" in line]
    assert filters and groups and min(filters) > max(groups)


@pytest.mark.long
def test_a_table_that_refreshes_left_is_whole(lake: Lake) -> None:
    for begin in (ROWS, ROWS + 1_000):
        for table in (GROUPS, BAG, ABOVE):
            lake.refresh(table)
        add(lake, begin, 10)
        delta(lake, "orders").optimize.compact()
    for table in (GROUPS, BAG, ABOVE):
        lake.refresh(table)
        found = lake.checks.invariants(table)
        assert (found.violations, found.sample, found.left_out) == ((), [], "")


@pytest.mark.smoke("damaged hidden state")
def test_damaged_state_is_shown_with_its_rows(lake: Lake) -> None:
    lake.refresh(GROUPS)
    totals = delta(lake, "totals")
    assert "__st_n" in totals.to_pyarrow_table().column_names
    totals.update(updates={"__st_n": "0"}, predicate="customer = 3")
    found = lake.checks.invariants(GROUPS)
    said = [str(each) for each in found.violations]
    assert "totals: rows were changed by another writer since the last refresh" in said
    assert "totals: not so: __st_n, the number of its rows, is 1 or more (1 of them)" in said
    [row] = found.sample
    assert (row["__table"], row["customer"]) == ("totals", 3)
    assert "is 1 or more" in row["__broken"]

    write_deltalake(totals, totals.to_pyarrow_table(filters=[("customer", "=", 4)]), mode="append")
    found = lake.checks.invariants(GROUPS)
    assert "totals: several rows have one key (customer) (1 of them)" in map(str, found.violations)


def test_a_frontier_ahead_of_its_source_is_found(lake: Lake) -> None:
    add(lake, ROWS, 10)
    lake.refresh(BAG)
    (Path(lake.location("orders")) / "_delta_log" / f"{1:020d}.json").unlink()
    found = Lake(lake.root, spark=lake.access.spark).checks.invariants(BAG)
    assert [str(each) for each in found.violations] == [
        "paid: it reflects version 1 of orders, which is at 0"
    ]


@pytest.mark.smoke("intermediate tables")
def test_an_intermediate_table_is_looked_at_and_missed(lake: Lake) -> None:
    import shutil

    lake.refresh(ABOVE)
    add(lake, ROWS, 10)
    lake.refresh(ABOVE)
    folder = Path(lake.location("most")) / "_intermediate"
    [below] = folder.iterdir()
    DeltaTable(below).update(updates={"m0": "-1"}, predicate="k0 = 3")
    # The version that the frontier names is whole; what came after it is nobody's.
    assert lake.checks.invariants(ABOVE).violations == ()
    shutil.rmtree(below)
    [found] = Lake(lake.root, spark=lake.access.spark).checks.invariants(ABOVE).violations
    assert found.what == "the intermediate table no longer exists"


def test_a_definition_that_changed_leaves_the_rows_out(lake: Lake) -> None:
    lake.refresh(GROUPS)
    changed = StreamTable("totals", "SELECT customer, MAX(amount) AS m FROM orders GROUP BY 1")
    found = lake.checks.invariants(changed)
    assert found.violations == ()
    assert found.left_out == "the definition changed since the last refresh"


EVERY_TYPE = """SELECT *, CAST(id AS DECIMAL(38, 4)) / 3 AS part, array(amount) AS list,
named_struct('A-b', id, 'c', array(price)) AS pair, CAST('2020-01-01' AS DATE) AS day,
CAST('2020-01-01' AS TIMESTAMP_NTZ) AS local, CAST(id AS STRING) AS text FROM orders"""


def test_columns_that_drift_are_named(lake: Lake) -> None:
    every = StreamTable("every", EVERY_TYPE)
    for table in (every, GROUPS):
        lake.refresh(table)
        assert lake.checks.drift(table) == []
    add(lake, ROWS, 10, note=["x"] * 10)
    assert lake.checks.drift(every) == [Drift("every", "note", DriftKind.NEW, now="string")]
    assert lake.checks.drift(GROUPS) == []

    wide = delta(lake, "orders").to_pyarrow_table()
    wide = wide.set_column(2, "amount", wide.column("amount").cast(pa.int64()))
    replace_rows(lake, "orders", wide.drop_columns(["note"]))
    assert lake.checks.drift(GROUPS) == [
        Drift("orders", "amount", DriftKind.TYPE, was="int", now="bigint")
    ]
    other = StreamTable(
        "totals", "SELECT customer, COUNT(*) AS total, 1 AS one FROM orders GROUP BY 1"
    )
    assert lake.checks.drift(other)[1:] == [
        Drift("totals", "mean", DriftKind.MISSING, was="double"),
        Drift("totals", "one", DriftKind.NEW, now="int"),
    ]

    replace_rows(lake, "orders", wide.drop_columns(["amount"]))
    with pytest.raises(InvalidDefinition, match="amount"):
        lake.checks.drift(GROUPS)
    in_full = StreamTable("other", "SELECT id FROM orders", mode=Mode.FULL)
    lake.refresh(in_full)
    assert lake.checks.drift(in_full) == []


def test_a_table_is_behind_from_the_first_commit_with_rows_that_it_lacks(lake: Lake) -> None:
    with pytest.raises(MissingSource, match="never been refreshed"):
        lake.checks.behind(BAG)
    lake.refresh(BAG)
    assert lake.checks.behind(BAG) == []
    delta(lake, "orders").alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 60 days"}
    )
    assert lake.checks.behind(BAG) == []
    before = time.time()
    add(lake, ROWS, 10)
    after = time.time()
    add(lake, ROWS + 10, 10)
    [found] = lake.checks.behind(BAG)
    assert (found.source, found.frontier, found.newest) == ("orders", 0, 3)
    assert found.behind_since is not None
    assert before - 1 <= found.behind_since.timestamp() <= after + 1
    lake.refresh(BAG)
    assert lake.checks.behind(BAG) == []
