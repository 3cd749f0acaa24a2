"""The initial copy has the rows of one version, whatever their values, a batch at a time."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from changes.table import FEED, Table
from changes.test_random import plainly
from dagster_streamtables import Lake, PublicationEntry
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from replication.lake.replica import T, ops, publish, publisher, tuples

LARGEST = Decimal("9" * 20 + "." + "9" * 18)
LEAST = Decimal("-" + "9" * 20 + "." + "9" * 18)
LATE = datetime(2200, 1, 1, 1, 2, 3, 456789, UTC)
EXTREMES = pa.table(
    {
        "byte": pa.array([-128, 127, None], pa.int8()),
        "long": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "float": pa.array([float("nan"), -0.0, None], pa.float32()),
        "double": pa.array([float("inf"), 5e-324, None], pa.float64()),
        "text": pa.array(["", "é\n\\N \u2028", None]),
        "bytes": pa.array([b"", b"\x00\xff", None], pa.binary()),
        "decimal": pa.array([LEAST, LARGEST, None], pa.decimal128(38, 18)),
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
        "at": pa.array([datetime(1950, 1, 1, tzinfo=UTC), LATE, None], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, False, None]),
    }
)  # fmt: skip


def test_every_value_is_copied_and_published(lake: Lake) -> None:
    write_deltalake(lake.location("t"), EXTREMES)
    write_deltalake(lake.location("t"), EXTREMES, mode="append")
    publish(lake, PublicationEntry("t"))
    mine = publisher(lake)

    with mine.copy("s", [T]) as copy:
        rows = copy.rows(T).read_all()
    write_deltalake(lake.location("t"), EXTREMES.slice(0, 1), mode="append")
    batch = mine.read("s", {T: 1}, None, max_rows=9).require()

    assert rows.schema == mine.offer().require()[T].schema
    every = Counter(map(plainly, tuples(EXTREMES)))
    assert Counter(map(plainly, tuples(rows))) == every + every
    [(op, _, _, new)] = ops([batch], T)
    assert (op, plainly(new or ())) == ("insert", plainly(tuples(EXTREMES)[0]))


def test_an_empty_table_and_one_column(lake: Lake) -> None:
    Table.new(lake.location("t"))
    write_deltalake(lake.location("one"), pa.table({"x": pa.array([None, 1, 1], pa.int32())}))
    publish(lake, PublicationEntry("t", ("v",)), PublicationEntry("one"))
    with publisher(lake).copy("s", [T, "public.one"]) as copy:
        assert copy.rows(T).read_all().num_rows == 0
        assert Counter(tuples(copy.rows("public.one").read_all())) == {(None,): 1, (1,): 2}


@pytest.mark.parametrize("settings", [FEED, {}], ids=["feed", "files"])
def test_partitions_are_published(lake: Lake, settings: dict[str, str]) -> None:
    rows = pa.table({"p": ["a", "b c/%", "é"], "q": [1, None, 3], "x": [1, 2, 3]})
    write_deltalake(lake.location("t"), rows, partition_by=["p", "q"], configuration=settings)
    publish(lake, PublicationEntry("t"))
    mine = publisher(lake)

    with mine.copy("s", [T]) as copy:
        assert Counter(tuples(copy.rows(T).read_all())) == Counter(tuples(rows))
    write_deltalake(lake.location("t"), rows.slice(1, 1), mode="append")
    DeltaTable(lake.location("t")).delete("x = 2")

    row = ("b c/%", None, 2)
    told = ops([mine.read("s", {T: 0}, None, max_rows=9)], T)
    assert told == [("insert", 1, None, row), *[("delete", 2, row, None)] * 2]


def test_a_copy_comes_a_batch_at_a_time_and_its_version_is_kept(lake: Lake) -> None:
    many = pa.table({"x": range(200_000)})
    write_deltalake(lake.location("t"), many)
    publish(lake, PublicationEntry("t"))
    with publisher(lake).copy("s", [T]) as copy:
        reader = copy.rows(T)
        first = reader.read_next_batch()
        write_deltalake(lake.location("t"), many.slice(0, 1), mode="overwrite")
        rest = reader.read_all()
    assert first.num_rows <= 65_536
    assert first.num_rows + rest.num_rows == 200_000


def test_a_copy_of_files_that_are_gone_is_told(lake: Lake) -> None:
    write_deltalake(lake.location("t"), pa.table({"x": range(9)}))
    publish(lake, PublicationEntry("t"))
    with publisher(lake).copy("s", [T]) as copy:
        for file in Path(lake.location("t")).glob("*.parquet"):
            file.unlink()
        with pytest.raises(LostSlot, match="lost changes"):
            copy.rows(T).read_all()
