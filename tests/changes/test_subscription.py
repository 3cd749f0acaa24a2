"""A subscription from its beginning to its end, and what becomes of its slot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake, subscribe
from dagster_streamtables.changes import subscription
from dagster_streamtables.changes.beginning import clock_of, follow
from dagster_streamtables.changes.clock import clock as clocks
from dagster_streamtables.changes.slots import move_slot
from dagster_streamtables.errors import HistoryUnavailable, RefusedOperation


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Table ``t`` with row 1 from version 0 on, and 2 from version 1 on; ``u`` has row 1."""
    made = Lake(str(tmp_path))
    for name, numbers in (("t", (1, 2)), ("u", (1,))):
        for number in numbers:
            write_deltalake(made.location(name), pa.table({"k": [number]}), mode="append")
    return made


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("as_of", [None, 1])
def test_fetch_0_fixes_the_time_and_loses_no_progress(
    lake: Lake, *, snapshot: bool, as_of: int | None
) -> None:
    with subscribe(lake, "t", as_of=as_of, snapshot=snapshot, progress=True, order_by="k") as sub:
        assert sub.fetch(0).num_rows == 0
        write_deltalake(lake.location("t"), pa.table({"k": [3]}), mode="append")
        rows = [tuple(row.values()) for row in sub.fetch(None, 0).to_pylist()]
    before = [(1, False, 1, 1), (1, False, 1, 2), (2, True, None, None)] if snapshot else []
    assert rows == [(1, True, None, None), *before, (2, False, 1, 3), (3, True, None, None)]


def test_a_row_of_progress_is_no_part_of_a_timestamp(lake: Lake) -> None:
    with subscribe(lake, "t", as_of=1, progress=True, batch_rows=1) as sub:
        parts = []
        while (batch := sub.next_batch(0)) is not None:
            parts.append((batch.num_rows, sub.partial))
        assert parts == [(1, False), (1, True), (1, False), (1, False)]
        assert not sub.ended


def test_what_was_read_to_the_end_can_be_acknowledged(lake: Lake) -> None:
    sub = subscribe(lake, "t", as_of=0, up_to=2, slot="s")
    assert sub.fetch(None).num_rows == 2
    assert sub.ended
    sub.ack()
    slot = lake.slots.read("s")
    assert (slot.held["t"].version, slot.reader) == (1, None), "the next reader need not wait"


def test_a_subscription_that_cannot_begin_frees_its_slot(lake: Lake) -> None:
    with subscribe(lake, "t", as_of=0, slot="s"):
        pass
    before = lake.slots.read("s").token
    write_deltalake(lake.location("t"), pa.table({"k": [3]}), mode="overwrite")
    DeltaTable(lake.location("t")).create_checkpoint()
    for version in (0, 1):
        (Path(lake.location("t")) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(HistoryUnavailable):
        subscribe(Lake(lake.root), "t", slot="s")
    slot = lake.slots.read("s")
    assert (slot.token, slot.reader) == (before, None)


def test_a_slot_is_not_moved_to_another_relation(lake: Lake) -> None:
    with subscribe(lake, "t", slot="s"):
        pass
    before = lake.slots.read("s")
    other = follow(lake, "u")
    with pytest.raises(RefusedOperation, match="follows"):
        move_slot(lake.slots, "s", other, clock_of(lake, other, "version"), None, snapshot=True)
    assert lake.slots.read("s") == before


def test_a_clock_that_is_set_back_hides_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subscribe(lake, "t", clock="ms") as followed:
        assert followed.fetch(None, 0).num_rows == 2
        for module in (clocks, subscription):
            monkeypatch.setattr(module, "present", lambda: datetime.now(UTC) - timedelta(hours=1))
        for k in (3, 4):
            write_deltalake(lake.location("t"), pa.table({"k": [k]}), mode="append")
            assert followed.fetch(None, 0).column("k").to_pylist() == [k]
