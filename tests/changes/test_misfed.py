"""Feeds of delta-rs that lie about floats: what they say is not what went."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake, subscribe

FEED = {"delta.enableChangeDataFeed": "true"}
Change = Callable[[str], object]


def _delete(place: str) -> object:
    return DeltaTable(place).delete("f > 1")


def _merge(place: str) -> object:
    rows = pa.table({"k": pa.array([0, 1], pa.int64())})
    merge = DeltaTable(place).merge(rows, "t.f > 1 AND s.k = t.k", "s", "t")
    return merge.when_matched_delete().execute()


@pytest.mark.parametrize("change", [_delete, _merge])
def test_nan_goes_although_the_feed_has_the_other_value_twice(change: Change, lake: Lake) -> None:
    place = lake.location("t")
    rows = {"k": pa.array([0, 1], pa.int64()), "f": pa.array([1.5, math.nan])}
    write_deltalake(place, pa.table(rows), configuration=FEED)
    change(place)
    feed = pa.table(DeltaTable(place).load_cdf(starting_version=1))
    assert feed["f"].to_pylist() == [1.5, 1.5], "delta-rs is mended: trust its feed again"

    with subscribe(lake, "t", as_of=0, snapshot=False, order_by="k") as found:
        [first, second] = found.fetch(2, timeout=10).to_pylist()

    assert (first["k"], first["_diff"], first["f"]) == (0, -1, 1.5)
    assert (second["k"], second["_diff"]) == (1, -1)
    assert math.isnan(second["f"])
