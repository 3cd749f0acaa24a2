"""A lease keeps others out until it ends, is released, or its process is gone."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dagster_streamtables.runtime.observe import lease as leases
from dagster_streamtables.runtime.observe.lease import Lease, renewing

MINUTE = timedelta(minutes=1)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_it_runs_until_its_end() -> None:
    lease, now = Lease.begin(MINUTE), datetime.now(UTC)
    assert lease.runs()
    assert lease.runs(now + MINUTE - timedelta(seconds=1))
    assert not lease.runs(now + MINUTE + timedelta(seconds=1))
    time.sleep(0.001)
    assert lease.extend().until > lease.until
    assert lease.extend().id == lease.id != Lease.begin(MINUTE).id


GONE: dict[str, Callable[[Lease], Lease]] = {
    "its process ended": lambda lease: replace(lease, pid=ended_process()),
    "its number was given to another": lambda lease: replace(lease, birth="0.0"),
}
UNKNOWN: dict[str, Callable[[Lease], Lease]] = {
    "of another container of this machine": lambda lease: replace(
        lease, host=f"{lease.host.rpartition('/')[0]}/4026530000", pid=ended_process()
    ),
    "of another machine": lambda lease: replace(lease, host="elsewhere", pid=ended_process()),
    "of an unknown birth": lambda lease: replace(lease, birth="", pid=ended_process()),
}


@pytest.mark.parametrize("case", GONE)
def test_it_ends_with_its_process(case: str) -> None:
    assert not GONE[case](Lease.begin(MINUTE)).runs()


@pytest.mark.parametrize("case", UNKNOWN)
def test_it_runs_if_nobody_can_tell(case: str) -> None:
    assert UNKNOWN[case](Lease.begin(MINUTE)).runs()


UNTIL = datetime(2100, 1, 1, tzinfo=UTC)
STORED: dict[str, tuple[dict[str, Any], Lease]] = {
    "now": (
        {"id": "a", "seconds": 5.0, "until": "2100-01-01T00:00:00+00:00"}
        | {"host": "h", "pid": 7, "birth": "b"},
        Lease("a", 5.0, UNTIL, "h", 7, "b"),
    ),
    "the reader of a slot, once": (
        {"id": "a", "lease_seconds": 5.0, "lease_until": "2100-01-01T00:00:00+00:00"},
        Lease("a", 5.0, UNTIL, "", 0, ""),
    ),
    "the worker of a replication, once": (
        {"id": "a", "until": "2100-01-01T00:00:00+00:00", "host": "h", "process": 7, "birth": "b"},
        Lease("a", 60.0, UNTIL, "h", 7, "b"),
    ),
}


@pytest.mark.parametrize("case", STORED)
def test_it_is_read_as_it_was_stored(case: str) -> None:
    stored, lease = STORED[case]
    assert Lease.from_json(stored) == lease
    assert Lease.from_json(lease.to_json()) == lease


@pytest.mark.parametrize("stored", [{}, {"id": "a"}, {"id": "a", "until": "soon"}, None, 7])
def test_what_is_none_is_refused(stored: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Lease.from_json(stored)


def test_it_is_renewed_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LENGTH", timedelta(seconds=0.03))
    calls: list[int] = []

    def renew() -> None:
        calls.append(len(calls))
        raise OSError("a disk that refuses must not end the work")

    with renewing(renew):
        deadline = time.monotonic() + 60
        while len(calls) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert calls[:3] == [0, 1, 2]
    done = len(calls)
    time.sleep(0.05)
    assert len(calls) == done
