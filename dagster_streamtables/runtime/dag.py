"""Run work on the tables of a graph: each after those it needs, otherwise concurrently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


def in_order(
    needs: Mapping[Key, Collection[Key]],
    work: Callable[[Key], Result],
    *,
    parallel: int,
) -> Iterator[tuple[Key, Future[Result] | None]]:
    """Run the work of every key after that of the keys it needs.

    Args:
        needs: Key → the keys that go before it; those that are not keys themselves are ignored.
        work: Runs in threads.
        parallel: Number of concurrent threads.

    Yields:
        Each key as its work ends; with None if it did not start, because the work of a key that it
        needs failed or did not start.

    Raises:
        graphlib.CycleError: The keys have no order.
    """
    within = {key: {each for each in before if each in needs} for key, before in needs.items()}
    sorter = TopologicalSorter(within)
    sorter.prepare()
    out: set[Key] = set()
    running: dict[Future[Result], Key] = {}
    with ThreadPoolExecutor(parallel, thread_name_prefix="refresh") as pool:
        while sorter.is_active():
            for key in sorter.get_ready():
                if within[key] & out:
                    out.add(key)
                    yield key, None
                    sorter.done(key)
                else:
                    running[pool.submit(work, key)] = key
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                key = running.pop(done)
                if done.exception() is not None:
                    out.add(key)
                yield key, done
                sorter.done(key)
