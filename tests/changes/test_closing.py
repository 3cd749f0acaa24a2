"""What waits for a subscription's end may be interrupted anywhere."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake, subscribe
from dagster_streamtables.changes.subscription import Closing, Subscription


class Signal(BaseException):
    """What the handler of a signal raises."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path))
    write_deltalake(made.location("t"), pa.table({"k": [1]}))
    return made


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
        assert sub.fetch(None, 0).num_rows == 1
        interrupted = interrupt(sub, places + 1)
        places += interrupted
        assert sub.next_batch(0.01) is None and not sub.ended, "it can be read on"
    assert places > 5


def test_who_waits_is_woken_at_once_and_waits_no_more() -> None:
    closing = Closing()
    closing.wait(0)
    assert not closing.is_set()
    waiting = threading.Thread(target=closing.wait, args=(600,))
    waiting.start()
    closing.set()
    closing.set()
    waiting.join(60)
    assert not waiting.is_alive() and closing.is_set()
    closing.wait(600)
