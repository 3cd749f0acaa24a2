"""The columns of a published table change: a batch ends there, and rows are never misread."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from changes.table import Table
from dagster_streamtables import Lake, PublicationEntry
from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from replication.lake.replica import KEYED, T, ops, replica_of


def test_a_batch_ends_where_the_columns_change(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, KEYED)
    t.insert((3, "c"))
    t.add_column("n", "integer")
    t.merge((3, "C"))

    batches = [replica.step() for _ in range(2)]

    assert [batch.end[T] for batch in batches] == [2, 4]
    assert [batch.complete for batch in batches] == [False, True]
    shown = [batch.tables[T].table.schema.names for batch in batches]
    assert shown == [["k", "v"], ["k", "v", "n"]]
    assert ops(batches, T) == [("insert", 2, None, (3, "c")), ("update", 4, None, (3, None, "C"))]
    assert batches[1].tables[T].table.fills == {}


def test_a_column_that_comes_with_rows(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, KEYED)
    rows = pa.table({"k": [2, 3], "v": ["b", "c"], "n": pa.array([7, 8], pa.int64())})
    write_deltalake(t.location, rows, mode="overwrite", schema_mode="merge")

    assert sorted(ops([replica.step()], T), key=repr) == [
        ("delete", 2, (1,), None),
        ("insert", 2, None, (3, 8, "c")),
        ("update", 2, None, (2, 7, "b")),
    ]


def test_a_column_list_is_not_touched_by_other_columns(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, PublicationEntry("t", columns=("k", "v"), key=("k",)))
    t.insert((3, "c"))
    t.add_column("n", "integer")
    t.insert((4, "d"))

    [batch] = replica.follow()

    assert len(ops([batch], T)) == 2


def test_rows_that_were_rewritten_with_another_type_are_copied_again(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, KEYED)
    rows = pa.table({"k": ["1", "2"], "v": ["a", "b"]})
    write_deltalake(t.location, rows, mode="overwrite", schema_mode="overwrite")

    with pytest.raises(LostSlot, match="lost changes") as told:
        replica.follow()
    assert 'column "k" became string' in told.value.why


def test_a_column_that_was_dropped_leaves_the_rest(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, KEYED)
    write_deltalake(t.location, pa.table({"k": [1, 3]}), mode="overwrite", schema_mode="overwrite")

    batch = replica.step()

    assert batch.tables[T].table.schema.names == ["k"]
    assert ops([batch], T) == [("delete", 2, (2,), None), ("insert", 2, None, (3,))]


def test_a_listed_column_that_was_dropped_is_told(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, PublicationEntry("t", columns=("k", "v"), key=("k",)))
    write_deltalake(t.location, pa.table({"k": [1]}), mode="overwrite", schema_mode="overwrite")

    with pytest.raises(PublisherProblem, match='has no column "v"'):
        replica.follow()
