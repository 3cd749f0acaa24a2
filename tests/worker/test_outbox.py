"""Reports arrive at a bounded rate, upstream first, and later if they cannot arrive now."""

from __future__ import annotations

import threading

import pytest

from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.worker.outbox import Outbox, ReplicationSummary, Summary

pytestmark = pytest.mark.process


class Receiver:
    """Notes what it is told; may be away."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.away = threading.Event()
        self.news = threading.Semaphore(0)

    def record_refreshes(self, name: str, summary: Summary | ReplicationSummary) -> None:
        if self.away.is_set():
            self.news.release()
            raise ConnectionError("the database is locked")
        self.told.append((name, summary.count))
        self.news.release()

    def hears(self) -> bool:
        return self.news.acquire(timeout=30)

    def mark_fresh(self, name: str) -> None:
        pass

    def record_failure(self, name: str, error: Exception) -> None:
        pass


def refresh(name: str) -> Refresh:
    return Refresh(name, Action.DIFFERENTIAL, "why", 1, "d1", {})


def test_what_comes_within_the_interval_is_told_as_one() -> None:
    receiver = Receiver()
    outbox = Outbox(receiver, ["a", "b"], every=3600)
    outbox.report_refresh(refresh("b"), {})
    assert receiver.hears()
    for name in ("b", "b", "a", "b"):
        outbox.report_refresh(refresh(name), {})
    assert receiver.hears()
    outbox.close(30)
    assert receiver.told == [("b", 1), ("a", 1), ("b", 3)]


def test_what_cannot_be_told_is_told_later_as_one() -> None:
    receiver = Receiver()
    outbox = Outbox(receiver, ["a", "b"], every=0.01)
    receiver.away.set()
    outbox.report_refresh(refresh("a"), {})
    assert receiver.hears()
    outbox.report_refresh(refresh("a"), {})
    outbox.report_refresh(refresh("b"), {})
    receiver.away.clear()
    assert receiver.hears()
    outbox.close(30)
    assert sum(count for name, count in receiver.told if name == "a") == 2
    assert ("b", 1) in receiver.told
    assert outbox.late == ""


def test_a_receiver_that_stays_away_holds_up_nobody() -> None:
    receiver = Receiver()
    receiver.away.set()
    outbox = Outbox(receiver, ["a"], every=0.01)
    outbox.report_refresh(refresh("a"), {})
    assert receiver.hears()
    assert receiver.hears()
    assert "locked" in outbox.late
    outbox.close(0)


def test_what_comes_while_a_report_fails_is_told_with_it() -> None:
    class Once(Receiver):
        """Fails once; meanwhile there is another refresh."""

        def record_refreshes(self, name: str, summary: Summary | ReplicationSummary) -> None:
            if self.away.is_set():
                self.away.clear()
                outbox.report_refresh(refresh("a"), {})
                raise ConnectionError("the database is locked")
            super().record_refreshes(name, summary)

    receiver = Once()
    receiver.away.set()
    outbox = Outbox(receiver, ["a"], every=0.01)
    outbox.report_refresh(refresh("a"), {})
    assert receiver.hears()
    outbox.close(30)
    assert receiver.told == [("a", 2)]
