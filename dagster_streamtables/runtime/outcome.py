"""`Outcome`: the result for one table in a refresh of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from graphlib import CycleError

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.dag import in_order
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable


@dataclass(frozen=True)
class Outcome:
    """Exactly one of `refresh`, `error`, and `held_by` is set."""

    table: str
    refresh: Refresh | None = None
    error: Exception | None = None
    """Why it failed: a `StreamTablesError`, or an unexpected error."""
    held_by: tuple[str, ...] = ()
    """The tables it reads that failed or were skipped, so that it was skipped."""


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
            outcome = _outcome(name, done, needs, out)
            if outcome.refresh is None:
                out.add(name)
            yield outcome
    except CycleError as error:
        raise InvalidDefinition(
            "the stream tables read one another in a cycle",
            where=" is read by ".join(error.args[1]),
            fix="remove one of these tables from one of these queries",
        ) from None


def _outcome(
    name: str, done: Future[Refresh] | None, needs: Mapping[str, tuple[str, ...]], out: set[str]
) -> Outcome:
    if done is None:
        return Outcome(name, held_by=tuple(each for each in needs[name] if each in out))
    error = done.exception()
    if error is None:
        return Outcome(name, refresh=done.result())
    if not isinstance(error, Exception):
        raise error
    return Outcome(name, error=error)
