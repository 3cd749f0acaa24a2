"""What rewrites change of rows that they only carry over, in commits that do not say so.

    delta-rs    reads INT96 and the old calendar otherwise than Spark does: to compact a file in
                INT96 makes the year 9999 1816.
    Spark       may write an encoding that has not all times: to compact a file in milliseconds cuts
                off microseconds.
    both        make NULL of the empty text of a partition.
    both        write a time that is a partition's value in their own form: Spark in UTC, and so
                marked, delta-rs without a zone. Spark reads the latter in the zone of its session,
                so in any zone but UTC the rows have another time afterwards.
    Spark       writes each column under its name when column mapping ends: two that were renamed
                to each other have changed their values, and the schema is the one of before.

The commits say that no row changed, or have a feed without these rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import Action
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.time_encodings import (
    MILLISECONDS,
    OLD_CALENDAR,
    encodings_of,
    far_files,
    is_misread,
    paths_of,
    time_columns,
)

_LOSING = frozenset({OLD_CALENDAR, MILLISECONDS})
_AT_ONCE = 16
_IN_ZONE = re.compile(r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
"""How the text of a time ends that names its zone."""


@dataclass(frozen=True)
class Rewrite:
    """A commit of an engine that writes all of its files in one encoding."""

    version: int
    written: tuple[str, ...]
    """One of its new data files, and one of its feed's, as far as there are any."""
    removed: tuple[str, ...]
    """The files whose rows it may have carried over."""


def rewrites_of(
    version: int, adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action]
) -> list[Rewrite]:
    """A commit as a rewrite, if it may be one. A file that gets a vector is not written anew."""
    came, went, fed = ([unquote(each["path"]) for each in some] for some in (adds, removes, feed))
    gone = set(went)
    new = [path for path in came if path not in gone]
    written = (*new[:1], *fed[:1])
    return [Rewrite(version, written, tuple(went))] if went and written else []


def misreads(log: TableLog, before: int, rewritten: Collection[str]) -> bool:
    """Whether delta-rs rewrote files of a version of which it reads other rows than Spark does.

    A file that is gone counts as misread, unless the minimum and maximum in the log say that it is
    not.
    """
    first = log.at(before) if rewritten and time_columns(log) else None
    if first is None:
        return False
    asked = set(rewritten) - _near_files(first)
    return any(is_misread(first, path) for path in sorted(asked))


def _near_files(log: TableLog) -> set[str]:
    """The files whose times are the same in all encodings, but for milliseconds."""
    if not log.adds.num_rows:
        return set()
    far = set(far_files(log, time_columns(log)))
    return {unquote(path) for path in paths_of(log.adds) if path not in far}


def cuts_times(log: TableLog, rewrites: Sequence[Rewrite]) -> bool:
    """Whether a rewrite may have lost times by its encoding.

    The footers of its written files are read, and, if those are in such an encoding, those of the
    removed ones. A written file that is gone counts as being in all such encodings, a removed one
    as being in none.
    """
    if not rewrites or not time_columns(log):
        return False
    written = list(dict.fromkeys(path for each in rewrites for path in each.written))
    found = dict(zip(written, _losing(log, written, gone=_LOSING), strict=True))
    for each in rewrites:
        losing = frozenset[str]().union(*(found[path] for path in each.written))
        if losing and _loses(log, each, losing):
            return True
    return False


def _loses(log: TableLog, rewrite: Rewrite, losing: frozenset[str]) -> bool:
    """Whether a removed file was not in an encoding that loses some of its times."""
    removed = rewrite.removed
    if MILLISECONDS not in losing:
        before = log.at(rewrite.version - 1)
        near = set[str]() if before is None else _near_files(before)
        removed = tuple(path for path in removed if path not in near)
    parts = (removed[at : at + _AT_ONCE] for at in range(0, len(removed), _AT_ONCE))
    return any(losing - had for part in parts for had in _losing(log, part, gone=frozenset()))


def _losing(log: TableLog, paths: Sequence[str], gone: frozenset[str]) -> list[frozenset[str]]:
    """Of each file, those of its encodings that lose times; `gone` for one that is gone."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda path: encodings_of(log, path), paths)
        return [gone if each is None else each & _LOSING for each in found]


def loses_empty_texts(adds: Sequence[Action], removes: Sequence[Action]) -> bool:
    """Whether rows of a partition whose text is empty may have moved to that of NULL.

    Both engines may write such a partition, and read it as it is. Whatever rewrites one of its
    files, OPTIMIZE by either engine, or UPDATE of another row by Spark, has NULL in place of the
    text; the commit says that no rows changed, or has a feed without them.
    """
    came, went = map(_partitions_of, (adds, removes))
    empty = {name for values in went for name, value in values.items() if value == ""}
    return any(values.get(name) is None for values in came for name in empty)


def moves_times(written: Sequence[Action], removes: Sequence[Action]) -> bool:
    """Whether rows, or their like in the feed, may be of another time for who reads them.

    The columns are not looked up: a partition of such a text keeps it, so both forms are there only
    where rows were written that were not before.
    """
    came, went = map(_forms, (written, removes))
    return any(len(came[name] | went[name]) > 1 for name in came.keys() & went.keys())


def _forms(actions: Sequence[Action]) -> dict[str, set[bool]]:
    """Of each partition column, whether its values name a zone."""
    found: dict[str, set[bool]] = {}
    for values in _partitions_of(actions):
        for name, value in values.items():
            if value is not None:
                found.setdefault(name, set()).add(bool(_IN_ZONE.search(value)))
    return found


def _partitions_of(actions: Sequence[Action]) -> list[Mapping[str, str | None]]:
    return [each.get("partitionValues") or {} for each in actions]
