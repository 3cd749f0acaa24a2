"""The order of changes of one row within a transaction, where triggers made some of them.

A statement trigger comes after the statement, with all that its other triggers did. So what a
trigger of a table does to the row that fired it is in the log before the change that fired it. Each
change tells the row before and after, though, so that the changes of a row are a chain, and where
those of the log are none, there is one order that is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dagster_streamtables.replication.model.errors import PublisherProblem

Image = Hashable
"""A row, or None for none."""
Link = tuple[Image, Image]
"""The row before and after a change."""


@dataclass(frozen=True)
class Events:
    """Changes of one table, in the order of the log."""

    groups: np.ndarray
    """Between two changes of one group no truncate lies, and no end of a transaction."""
    statements: np.ndarray
    is_nested: np.ndarray
    """Whether a trigger made it."""
    old: np.ndarray
    new: np.ndarray
    """Rows; -1 for none."""


def in_order(
    events: Events,
    keys: np.ndarray,
    image: Callable[[int], Image],
    *,
    fires_others: bool,
    table: str,
) -> np.ndarray:
    """
    Args:
        events: The changes.
        keys: By row, a number that is equal where the identity is.
        image: A row's published values.
        fires_others: Whether the table has triggers of others, which may change it.
        table: Its name.

    Returns:
        The indices of the changes, in the order in which they happened.

    Raises:
        PublisherProblem: There is no such order, or several.
    """
    order = np.arange(len(events.old))
    for key, changes in _shared(events, keys):
        links = [_link(events, each, image) for each in changes]
        has_moved = any(_has_moved(events, each, keys) for each in changes)
        if has_moved:
            links = _halves(events, changes, keys == key, links)
        if _is_chain(links):
            may_differ = fires_others and links[0][0] == links[-1][1]
            if not may_differ or not events.is_nested[changes].any():
                continue
            raise _not_told(table)
        found = None if has_moved else _chain(links)
        if found is None:
            raise _not_told(table)
        order[changes] = np.array(changes)[found]
    return order


def _not_told(table: str) -> PublisherProblem:
    return PublisherProblem(
        f'in which order a transaction changed a row of "{table}" is not told',
        why="a trigger changed the row that had fired it, and more than one order is possible",
        fix="copy the table again; with wal_level = logical the server tells the order",
    )


def _shared(events: Events, keys: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """The key and the changes of each row that several statements of one transaction changed."""
    has_old, has_new = np.flatnonzero(events.old >= 0), np.flatnonzero(events.new >= 0)
    changes = np.concatenate([has_old, has_new])
    rows = np.concatenate([keys[events.old[has_old]], keys[events.new[has_new]]])
    groups, statements = events.groups[changes], events.statements[changes]
    sort = np.lexsort((changes, rows, groups))
    changes, rows, groups, statements = (x[sort] for x in (changes, rows, groups, statements))
    starts = np.ones(len(changes), bool)
    starts[1:] = (rows[1:] != rows[:-1]) | (groups[1:] != groups[:-1])
    bounds = np.append(np.flatnonzero(starts), len(changes))
    differs = np.zeros(len(changes), bool)
    differs[1:] = ~starts[1:] & (statements[1:] != statements[:-1])
    for each in np.unique(np.searchsorted(bounds, np.flatnonzero(differs), "right") - 1).tolist():
        first, end = bounds[each], bounds[each + 1]
        yield int(rows[first]), np.unique(changes[first:end]).tolist()


def _link(events: Events, change: int, image: Callable[[int], Image]) -> Link:
    old, new = int(events.old[change]), int(events.new[change])
    return image(old) if old >= 0 else None, image(new) if new >= 0 else None


def _has_moved(events: Events, change: int, keys: np.ndarray) -> bool:
    old, new = events.old[change], events.new[change]
    return bool(old >= 0 and new >= 0 and keys[old] != keys[new])


def _halves(
    events: Events, changes: Sequence[int], is_key: np.ndarray, links: list[Link]
) -> list[Link]:
    """Of a change of the identity, what it does to the row of one key."""
    halves = []
    for change, (before, after) in zip(changes, links, strict=True):
        old, new = events.old[change], events.new[change]
        halves.append(
            (before if old >= 0 and is_key[old] else None,
             after if new >= 0 and is_key[new] else None)
        )  # fmt: skip
    return halves


def _is_chain(links: Sequence[Link]) -> bool:
    return all(one[1] == other[0] for one, other in pairwise(links))


def _chain(links: Sequence[Link]) -> list[int] | None:
    """The one order in which each link begins where the one before ends; None if several end
    otherwise."""
    begins, ends = [a for a, _ in links], [b for _, b in links]
    starts = [i for i, begin in enumerate(begins) if begins.count(begin) > ends.count(begin)]
    if not starts:
        return None
    # A walk that goes on as long as it can; where it leaves out links, these are a round trip.
    stack, path = [starts[0]], list[int]()
    left = set(range(len(links))) - {starts[0]}
    while stack:
        following = next((i for i in sorted(left) if begins[i] == ends[stack[-1]]), None)
        if following is None:
            path.append(stack.pop())
        else:
            left.discard(following)
            stack.append(following)
    path.reverse()
    return path if not left and _is_chain([links[i] for i in path]) else None
