"""The dependency graph of stream tables: order, cycles, readers, and inherited schedules.

Everything is a function of ``reads``, a mapping from the name of a stream table to the names of the
tables that its query reads. Names that are not keys of it are not stream tables, and are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from dagster_streamtables.declare.schedule import Duration, OnChange, Schedule
from dagster_streamtables.errors import InvalidDefinition

Reads = Mapping[str, Collection[str]]


def dependency_order(reads: Reads) -> list[str]:
    """All tables, each after the tables it reads.

    Raises:
        InvalidDefinition: There is a cycle; the message shows its path.
    """
    for path in cycles(reads):
        raise cycle_error(path)
    return list(TopologicalSorter(_within(reads)).static_order())


def cycles(reads: Reads) -> list[tuple[str, ...]]:
    """Cycles, as paths from a table to one that it reads. Each is disjoint from the others; without
    their tables, the graph has no cycle.

    >>> cycles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a", "source"]})
    [('a', 'b', 'c', 'a')]
    """
    found: list[tuple[str, ...]] = []
    left = _within(reads)
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib reports a path along which each table is read by the next.
            path = _from_first(error.args[1][:0:-1], list(reads))
            found.append(path)
            left = _within({name: read for name, read in left.items() if name not in path})
        else:
            return found


def cycle_error(path: tuple[str, ...]) -> InvalidDefinition:
    arrow = " reads ".join(path)
    return InvalidDefinition(
        "the stream tables read one another in a cycle",
        where=arrow,
        why="a table is refreshed after the tables it reads, so none of these can be the first",
        fix="remove one of these tables from one of these queries",
    )


def upstream(name: str, reads: Reads) -> set[str]:
    """All stream tables that the table reads, directly or through others."""
    return set(_walk(name, reads))


def readers(reads: Reads) -> dict[str, list[str]]:
    """The inverse graph: from each table to those that read it."""
    turned: dict[str, list[str]] = {name: [] for name in reads}
    for name, read in _within(reads).items():
        for source in read:
            turned[source].append(name)
    return turned


def inheritance_paths(
    schedules: Mapping[str, Schedule | None], reads: Reads
) -> dict[str, tuple[str, ...]]:
    """For each table without a schedule, the path to the table whose duration it inherits.

    That is the shortest duration among the tables that read it, directly or through others, whether
    these have a schedule or not. Cron schedules are not inherited: a cron expression is a list of
    times, not a bound on age. An empty path: there is no such table, so it is refreshed on demand.
    """
    turned = readers(reads)
    paths: dict[str, tuple[str, ...]] = {}
    for name, schedule in schedules.items():
        if schedule is None:
            below = _walk(name, turned)
            durations = [(s.seconds, reader) for reader in below for s in [schedules.get(reader)]
                         if isinstance(s, Duration | OnChange)]  # fmt: skip
            paths[name] = _path(below, min(durations)[1]) if durations else ()
    return paths


def group_by_connection(names: Iterable[str], reads: Reads) -> list[list[str]]:
    """The names in groups. Two are in one group if the graph connects them, even through others."""
    turned = readers(reads)
    both = {name: {*read, *turned[name]} for name, read in _within(reads).items()}
    groups: list[list[str]] = []
    placed: dict[str, list[str]] = {}
    for name in names:
        if name not in placed:
            groups.append([])
            placed |= dict.fromkeys([name, *_walk(name, both)], groups[-1])
        placed[name].append(name)
    return groups


def _within(reads: Reads) -> dict[str, list[str]]:
    return {name: [each for each in read if each in reads] for name, read in reads.items()}


def _walk(name: str, edges: Reads) -> dict[str, str | None]:
    """All reachable names, each with the name it was reached from, nearest first."""
    reached: dict[str, str | None] = {}
    border = [name]
    while border:
        border = list(_step(border, edges, reached))
    reached.pop(name, None)
    return reached


def _step(border: list[str], edges: Reads, reached: dict[str, str | None]) -> Iterator[str]:
    for origin in border:
        for each in edges.get(origin, ()):
            if each in edges and each not in reached:
                reached[each] = origin
                yield each


def _path(reached: Mapping[str, str | None], name: str) -> tuple[str, ...]:
    path = [name]
    while (origin := reached.get(path[-1])) in reached and origin is not None:
        path.append(origin)
    return tuple(reversed(path))


def _from_first(path: list[str], names: list[str]) -> tuple[str, ...]:
    start = min(range(len(path)), key=lambda i: names.index(path[i]))
    turned = [*path[start:], *path[:start]]
    return (*turned, turned[0])
