"""Run work on the tables of a graph, each after those it needs; `Outcome`: the result for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.refresh_report import Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


def in_order(
    needs: Mapping[Key, Collection[Key]], work: Callable[[Key], Result], *, parallel: int
) -> Iterator[tuple[Key, Future[Result] | None]]:
    """Run the work of every key, in threads, after the work of the keys it needs.

    Args:
        needs: Key → the keys before it; those that are not keys themselves are ignored.
        work: The work of a key.
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


@dataclass(frozen=True)
class Outcome:
    """Exactly one of `refresh`, `error`, and `held_by` is set."""

    table: str
    refresh: Refresh | None = None
    error: Exception | None = None
    """A `StreamTablesError`, or an unexpected error."""
    held_by: tuple[str, ...] = ()
    """The tables it reads that failed or were skipped."""


def outcomes(
    tables: Iterable[StreamTable], refresh: Callable[[StreamTable], Refresh], *, parallel: int
) -> Iterator[Outcome]:
    """Refresh tables, each after those it reads, and skip those that read a failed one.

    Raises:
        InvalidDefinition: Tables read one another in a cycle.
    """
    named = {table.name: table for table in tables}
    needs = {name: table.sources for name, table in named.items()}
    out: set[str] = set()
    try:
        for name, done in in_order(needs, lambda name: refresh(named[name]), parallel=parallel):
            error = None if done is None else done.exception()
            if done is None:
                held_by = tuple(each for each in needs[name] if each in out)
                outcome = Outcome(name, held_by=held_by)
            elif error is None:
                outcome = Outcome(name, refresh=done.result())
            elif isinstance(error, Exception):
                outcome = Outcome(name, error=error)
            else:
                raise error
            if outcome.refresh is None:
                out.add(name)
            yield outcome
    except CycleError as error:
        raise InvalidDefinition(
            "the stream tables read one another in a cycle",
            where=" is read by ".join(error.args[1]),
            fix="remove one of these tables from one of these queries",
        ) from None
