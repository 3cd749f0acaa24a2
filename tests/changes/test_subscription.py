"""A subscription from its beginning to its end, and what becomes of its slot.

What waits for its end may be interrupted anywhere.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake, subscribe
from dagster_streamtables.changes import subscription
from dagster_streamtables.changes.clock import clock as clocks
from dagster_streamtables.changes.position import SubscriptionRequest, position_of
from dagster_streamtables.changes.subscription import CancelFlag, Subscription
from dagster_streamtables.changes.subscription_slots import move_slot
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
    other = SubscriptionRequest(lake, "u").start_new(snapshot=True)
    with pytest.raises(RefusedOperation, match="follows"):
        move_slot(lake.slots, "s", other, None)
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


def test_a_token_that_names_another_table_is_refused(tmp_path: Path) -> None:
    """A token may come from anywhere, as over HTTP: it has no other tables looked at."""
    lake = Lake(str(tmp_path))
    write_deltalake(lake.location("t"), pa.table({"k": [1]}))
    followed = subscribe(lake, "t")
    first = followed.next_batch(0)
    assert first is not None and first.num_rows == 1
    assert followed.next_batch(0) is None
    assert not followed.ended
    assert followed.token is not None
    position = position_of(followed.token)
    [seen] = position.frontier.values()
    forged = replace(position, frontier={"t": seen, "delta.`/etc/secrets`": seen})
    with pytest.raises(RefusedOperation, match="another subscription"):
        subscribe(lake, "t", resume=forged.token)
    followed.close()
    assert followed.ended


class Signal(BaseException):
    """What the handler of a signal raises."""


def interrupt(sub: Subscription, at: int) -> bool:
    """Wait for what never comes, and raise `Signal` where Python would run a signal's handler for
    the `at`-th time: as it enters a function, begins a line or returns. False: it ended before."""
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_name != interrupt.__name__:
            seen += event != "exception"
            if seen == at:
                raise Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        sub._wait(time.monotonic() + 0.001)
    except Signal:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_exception_of_a_signal_is_what_comes_out_wherever_it_is_raised(lake: Lake) -> None:
    places = 0
    interrupted = True
    while interrupted:
        sub = subscribe(lake, "t")
        assert sub.fetch(None, 0).num_rows == 2
        interrupted = interrupt(sub, places + 1)
        places += interrupted
        assert sub.next_batch(0.01) is None and not sub.ended, "it can be read on"
    assert places > 5


def test_who_waits_is_woken_at_once_and_waits_no_more() -> None:
    closing = CancelFlag()
    closing.wait(0)
    assert not closing.is_set()
    waiting = threading.Thread(target=closing.wait, args=(600,))
    waiting.start()
    closing.set()
    closing.set()
    waiting.join(60)
    assert not waiting.is_alive() and closing.is_set()
    closing.wait(600)
