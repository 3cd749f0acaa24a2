"""A reader who is cut off and comes again gets everything, once."""

from __future__ import annotations

import httpx
import pytest

from serve.conftest import CHANGES, Copy, History, Serve, Served

pytestmark = pytest.mark.process


def read_until(served: Served, copy: Copy, version: int, history: History, path: str) -> None:
    wanted = history.rows(version)
    with served.events(path, copy.id) as events:
        while copy.rows != wanted or copy.timestamps[-1] < version:
            copy.take(next(events))


def changed(history: History, commits: int) -> list[int]:
    """The versions of some commits in which rows changed."""
    versions = [history.commit() for _ in range(commits)]
    return [each for each in versions if history.rows(each) != history.rows(each - 1)]


@pytest.mark.long
def test_cut_off_at_every_commit(history: History, serve: Serve) -> None:
    versions = changed(history, 20)
    served = serve()
    for cut in range(1, len(versions)):
        copy = Copy()
        with served.events(f"{CHANGES}?as_of=0") as events:
            for heard in events:
                copy.take(heard)
                if copy.timestamps and copy.timestamps[-1] == versions[cut - 1]:
                    break
        assert copy.rows == history.rows(versions[cut - 1])
        read_until(served, copy, versions[-1], history, f"{CHANGES}?as_of=0")
        assert copy.timestamps == versions


@pytest.mark.long
def test_the_server_is_killed_in_between(history: History, serve: Serve) -> None:
    served, copy, seen = serve(), Copy(), []
    with served.events(f"{CHANGES}?as_of=0") as events:
        copy.take(next(events))
        for _ in range(3):
            seen += (some := changed(history, 3))
            while not copy.timestamps or copy.timestamps[-1] < some[-1]:
                copy.take(next(events))
    for _ in range(3):
        served.kill()
        copy.cut()
        seen += changed(history, 3)
        served.start()
        seen += (some := changed(history, 2))
        read_until(served, copy, seen[-1], history, f"{CHANGES}?as_of=0")
    assert copy.timestamps == seen
    assert copy.rows == history.rows()


def test_cut_off_within_a_timestamp(history: History, serve: Serve) -> None:
    """Its rows come again from the first, and only then is its id there."""
    for _ in range(12):
        history.commit()
    served = serve("--relation", "mart.t", "--max-rows-per-second", "3")
    copy = Copy()
    with served.events(CHANGES) as events:
        assert [next(events).kind for _ in range(3)] == ["reset", "snapshot", "snapshot"]
    with served.events(CHANGES) as events:
        parts = 0
        while not copy.id:
            copy.take(next(events))
            parts += 1
    assert parts > 3
    assert copy.rows == history.rows()


def test_who_has_everything_is_not_kept_coming(history: History, serve: Serve) -> None:
    """An EventSource comes again after each end, but not after a 204."""
    for _ in range(3):
        history.commit()
    served, copy = serve(), Copy()
    with served.events(f"{CHANGES}?as_of=0&up_to=3") as events:
        for heard in events:
            copy.take(heard)
    again = httpx.get(
        f"{served.address}{CHANGES}?as_of=0&up_to=3", headers={"Last-Event-ID": copy.id}
    )
    assert (again.status_code, copy.rows) == (204, history.rows(2))
