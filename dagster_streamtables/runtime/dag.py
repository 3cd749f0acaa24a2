"""Work on the tables of a graph: each after those it needs, others at the same time."""

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
    """Run the work of every key once that of those it needs is done.

    Args:
        needs: From each key to those that go before; who is no key takes no part.
        work: Runs in threads.
        parallel: How many at once.

    Yields:
        Each key as its work ends; with None where that was not begun, because the work of one it
        needs failed or was not begun.

    Raises:
        graphlib.CycleError: There is no order.
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
