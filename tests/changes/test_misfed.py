"""Commits of delta-rs that say less than they do: about floats, and about old and far moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake

from changes.table import FEED
from dagster_streamtables import Lake, subscribe

Change = Callable[[str], object]


def deleting(where: str) -> Change:
    return lambda place: DeltaTable(place).delete(where)


def merging_away(keys: list[int], where: str = "s.k = t.k") -> Change:
    def change(place: str) -> object:
        rows = pa.table({"k": pa.array(keys, pa.int64())})
        return DeltaTable(place).merge(rows, where, "s", "t").when_matched_delete().execute()

    return change


@pytest.mark.parametrize(
    "change",
    [deleting("f > 1"), merging_away([0, 1], "t.f > 1 AND s.k = t.k")],
    ids=["delete", "merge"],
)
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


CHANGES: dict[str, Change] = {
    "compact": lambda place: DeltaTable(place).optimize.compact(),
    "z-order": lambda place: DeltaTable(place).optimize.z_order(["k"]),
    "delete": deleting("k = 2"),
    "replace": lambda place: write_deltalake(
        place, _moments([2]), mode="overwrite", predicate="k = 2"
    ),
}
REWRITES = [
    pytest.param(change, id=name, marks=[] if name in ("compact", "delete") else pytest.mark.long)
    for name, change in CHANGES.items()
]


def _moments(keys: list[int]) -> pa.Table:
    """The far one for an odd key."""
    far, near = datetime(9999, 12, 31, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    times = pa.array([far if key % 2 else near for key in keys], pa.timestamp("us", "UTC"))
    return pa.table({"k": pa.array(keys, pa.int64()), "at": times})


def _as_spark_writes(lake: Lake, configuration: Mapping[str, str | None] | None) -> str:
    """Two files as Spark writes them by default: INT96, without statistics of their own."""
    place = lake.location("t")
    Path(place).mkdir(parents=True)
    for keys in ([1, 2], [3, 4]):
        pq.write_table(
            _moments(keys),
            f"{place}/{keys[0]}.parquet",
            use_deprecated_int96_timestamps=True,
            store_schema=False,
        )
    convert_to_deltalake(place, configuration=configuration)
    return place


@pytest.mark.spark
@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("feed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_delta_rs_changes_moments_that_it_only_carries_over(
    rewrite: Change, feed: bool, lake: Lake
) -> None:
    place = _as_spark_writes(lake, FEED if feed else None)

    with subscribe(lake, "t", order_by="k") as found:
        before = found.fetch(4, timeout=10).to_pylist()
        rewrite(place)
        changed = found.fetch(None, timeout=0).to_pylist()

    assert [row["at"].year for row in before] == [9999, 2020, 9999, 2020]
    years = {(row["k"], row["_diff"]): row["at"].year for row in changed}
    assert years[1, -1] == 9999
    assert years[1, 1] == 1816, "delta-rs is mended: trust its rewrites again"


@pytest.mark.spark
@pytest.mark.parametrize(
    "change", [deleting("k < 3"), merging_away([1, 2])], ids=["delete", "merge"]
)
def test_moments_that_go_with_all_rows_of_their_file(change: Change, lake: Lake) -> None:
    """Nothing is carried over, so the commit adds no file: only its feed is wrong."""
    place = _as_spark_writes(lake, FEED)

    with subscribe(lake, "t", order_by="k") as found:
        found.fetch(4, timeout=10)
        change(place)
        changed = found.fetch(None, timeout=0).to_pylist()

    fed = pa.table(DeltaTable(place).load_cdf(starting_version=1))
    assert 1816 in [at.year for at in fed["at"].to_pylist()], "delta-rs is mended"
    assert not [path for path in DeltaTable(place).file_uris() if "1.parquet" in path]
    assert [(row["k"], row["_diff"], row["at"].year) for row in changed] == [
        (1, -1, 9999),
        (2, -1, 2020),
    ]
