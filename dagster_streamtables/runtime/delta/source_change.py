"""The change of a source between two versions, by its log.

    none        no commit
    files       commits that only rearranged files, or changed only properties
    appended    rows were only added: the change is the rows of the added files
    feed        the table wrote a Change Data Feed for the whole window
    snapshots   anything else: the rows of the files that only one end has

The added and removed files are the difference of the two ends, never a sum over the commits: a
commit may add a file that exists already, for example when it enables row tracking or recomputes
statistics. The commits show whether rows changed, and how many, an estimate that is never too low.

No data is read here, only the log and the footers of a few files.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import (
    Action,
    Commit,
    by_kind,
    data_changes,
    info_of,
    metrics_of,
)
from dagster_streamtables.runtime.delta.data_files import DataFile, live_files, sum_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import has_physical_names, maps_columns
from dagster_streamtables.runtime.delta.value_encodings import (
    Rewrite,
    cuts_times,
    loses_empty_texts,
    misreads,
    moves_times,
    rewrites_of,
)


class Capture(enum.StrEnum):
    """How a refresh reads the change of one source."""

    NONE = "none"
    """Nothing changed."""
    FILES = "files"
    """Files were only rearranged, or properties changed: no rows need to be read."""
    APPENDED = "appended"
    """Rows were only added: the rows of the added files."""
    FEED = "feed"
    """The Change Data Feed, which the table wrote for the whole window."""
    SNAPSHOTS = "snapshots"
    """The rows of the files that one end of the window has and the other has not."""
    ALL = "all"
    """A full refresh reads the table."""


@dataclass(frozen=True)
class SourceChange:
    """The change of one source between two of its versions."""

    before: int
    after: int
    capture: Capture
    rows: int | None = 0
    """Number of inserted and deleted rows; None if the log does not have it."""
    added: tuple[DataFile, ...] = ()
    """For ``appended``: the files. For ``snapshots``: the files that only `after` has, or with
    another deletion vector."""
    removed: tuple[DataFile, ...] = ()
    """For ``snapshots``: likewise for `before`."""
    vectors: bool = False
    """Whether files have deletion vectors."""
    lost: bool = False
    """Whether a commit of the window, or the version before it, is no longer in the log."""
    held: int | None = None
    """Rows of the table at `before`; None if unknown."""
    fed: tuple[tuple[DataFile, int | None], ...] = ()
    """For ``feed``: its files in order, and the weight of their rows; None if it is in the file."""
    by_files: Callable[[], SourceChange] | None = None
    """For ``feed``: returns the same window by the files of both ends."""

    @property
    def has_changes(self) -> bool:
        return self.capture not in (Capture.NONE, Capture.FILES)

    @property
    def without_feed(self) -> SourceChange:
        return self if self.by_files is None else replace(self.by_files(), held=self.held)


def change_between(log: TableLog, before: int, after: int | None = None) -> SourceChange:
    """The window from `before` to `after`, by default the version of `log`."""
    after = log.version if after is None else after
    if before == after:
        return SourceChange(before, after, Capture.NONE)
    seen = _read(log, before, after)
    if seen is None:
        return _unreadable_window(before, after)
    if not seen.moved or log.has_feed:
        seen.altered = seen.altered or cuts_times(log, seen.rewrites)
    if not (seen.moved or seen.altered):
        return SourceChange(before, after, Capture.FILES)

    def by_files() -> SourceChange:
        return _by_files(log, before, after, seen)

    misfed = seen.misfed or seen.altered
    if log.has_feed and not seen.redefined and not misfed and seen.takes_away:
        rows = seen.feed_rows(log, before)
        fed, vectors = tuple(seen.fed), bool(seen.under_vectors)
        return SourceChange(
            before, after, Capture.FEED, rows, fed=fed, vectors=vectors, by_files=by_files
        )
    return by_files()


def has_row_changes(log: TableLog, before: int, after: int | None = None) -> bool:
    """Whether rows changed in a window; true if the log no longer has it."""
    after = log.version if after is None else after
    if before == after:
        return False
    seen = _read(log, before, after)
    return seen is None or seen.moved or seen.altered or cuts_times(log, seen.rewrites)


def _unreadable_window(before: int, after: int) -> SourceChange:
    return SourceChange(before, after, Capture.SNAPSHOTS, rows=None, lost=True)


def _by_files(log: TableLog, before: int, after: int, seen: _CommitTotals) -> SourceChange:
    """The window as the difference of the files at its ends."""
    first = log.at(before)
    last = log if log.version == after else log.at(after)
    if first is None or last is None:
        return _unreadable_window(before, after)
    old, new = live_files(first), live_files(last)
    # Files with a vector are read at both ends, where equal rows cancel.
    both = {path for path in seen.under_vectors if path in old and path in new}
    added = tuple(file for path, file in new.items() if path not in old or path in both)
    removed = tuple(file for path, file in old.items() if path not in new or path in both)
    vectors = any(file.path in seen.under_vectors for file in (*added, *removed))
    if not removed and not vectors:
        return SourceChange(before, after, Capture.APPENDED, sum_rows(f.rows for f in added), added)
    rows = None if seen.altered else count_changes(seen.moves, _rows_by_path(old))
    return SourceChange(before, after, Capture.SNAPSHOTS, rows, added, removed, vectors)


def _rows_by_path(files: Mapping[str, DataFile]) -> dict[str, int | None]:
    return {path: file.rows for path, file in files.items()}


def _read(log: TableLog, before: int, after: int) -> _CommitTotals | None:
    """The totals of the commits in a window; None if one of them was deleted."""
    if before > after:
        return None
    floats = [n for n, type_ in log.columns.items() if "float" in type_ or "double" in type_]
    seen = _CommitTotals(floats)
    for version, commit in log.commits(before, after):
        if commit is None:
            return None
        seen.add(version, commit)
    seen.altered |= misreads(log, before, seen.rewritten)
    return seen


class _CommitTotals:
    """The totals of the commits in a window."""

    def __init__(self, floats: Sequence[str]) -> None:
        """Args: floats: The columns that are or contain floats."""
        self._floats = floats
        self.moves: list[Moves] = []
        self.fed: list[tuple[DataFile, int | None]] = []
        self.under_vectors: set[str] = set()
        """The paths of files that a commit named with a deletion vector."""
        self.rewritten: set[str] = set()
        """The paths of files that delta-rs removed and whose rows it may have rewritten."""
        self.rewrites: list[Rewrite] = []
        """The commits in which another engine may have carried rows over."""
        self._added: set[str] = set()
        self.moved = self.takes_away = self.redefined = self.misfed = False
        self.altered = False
        """Whether rows changed that neither the commits nor their feed contain."""
        self._renamed = False
        """Whether the last schema has columns of other names than the files."""

    def add(self, version: int, commit: Commit) -> None:
        kinds, info = by_kind(commit), info_of(commit)
        adds, removes, feed = (kinds.get(kind, []) for kind in ("add", "remove", "cdc"))
        came, went, metrics = data_changes(adds), data_changes(removes), metrics_of(info)
        moves = Moves(
            came={unquote(each["path"]): _rows(each) for each in came},
            hidden_after={unquote(each["path"]): _rows_under_vector(each) for each in came},
            hidden_before={unquote(each["path"]): _rows_under_vector(each) for each in went},
            copied=sum(int(metrics.get(name) or 0) for name in _COPIED),
            feed=tuple(unquote(each["path"]) for each in feed),
        )
        self.moves.append(moves)
        self.fed += _feed_of_commit(adds, removes, feed)
        self.moved |= bool(moves.came or moves.hidden_before or feed)
        self.takes_away |= bool(removes or feed)
        for metadata in kinds.get("metaData", ()):
            self.redefined = True
            maps = maps_columns(metadata.get("configuration") or {})
            self.altered |= self._renamed and not maps
            self._renamed = maps and has_physical_names(json.loads(metadata["schemaString"]))
        self.misfed |= bool(feed) and _has_wrong_feed(info, self._floats)
        self.altered |= loses_empty_texts(adds, removes) or moves_times((*adds, *feed), removes)
        if _is_by_delta_rs(info):  # which reads its own files as Spark does
            if adds or feed:  # only the feed, if no row is left
                self.rewritten |= {unquote(each["path"]) for each in removes} - self._added
            self._added |= {unquote(each["path"]) for each in adds}
        else:
            self.rewrites += rewrites_of(version, adds, removes, feed)
        named = (each for each in (*adds, *removes) if each.get("deletionVector") is not None)
        self.under_vectors |= {unquote(each["path"]) for each in named}

    def feed_rows(self, log: TableLog, before: int) -> int | None:
        """Rows in the feed; for a commit without feed files, in its data files."""
        fed = [path for each in self.moves for path in each.feed]
        unfed = [each for each in self.moves if not each.feed]
        rows = count_changes(unfed, {})
        if rows is None and (first := log.at(before)) is not None:
            rows = count_changes(unfed, _rows_by_path(live_files(first)))
        try:
            return None if rows is None else rows + sum(map(log.rows_in, fed))
        except OSError:
            return None


def _feed_of_commit(
    adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action]
) -> list[tuple[DataFile, int | None]]:
    """The feed of one commit: its feed files if any, otherwise its added and removed files, by the
    protocol's section "Reader Requirements for AddCDCFile"."""
    kinds = [(feed, None)] if feed else [(data_changes(removes), -1), (data_changes(adds), 1)]
    return [
        (DataFile(unquote(each["path"]), each.get("partitionValues") or {}, None), weight)
        for actions, weight in kinds
        for each in actions
    ]


def _has_wrong_feed(info: Mapping[str, Any], floats: Sequence[str]) -> bool:
    """Whether the commit's feed cannot be trusted: two defects of delta-rs (1.6.6).

    UPDATE writes the difference of two sets to the feed: after ``SET x = x + 1`` over (1) and (2),
    the row (2) is both old and new, and both its entries are missing, whatever the number of
    copies.

    With a condition on a float, its engine takes a file's column for constant if the minimum in
    the statistics equals the maximum, though NaN is in neither: ``f > 1`` over 1.5 and NaN deletes
    both rows, and the feed of DELETE or MERGE has 1.5 twice.

    For files that delta-rs reads otherwise than Spark, see `misreads`.
    """
    if not _is_by_delta_rs(info):
        return False
    condition = str((info.get("operationParameters") or {}).get("predicate") or "")
    return info.get("operation") == "UPDATE" or any(name in condition for name in floats)


def _is_by_delta_rs(info: Mapping[str, Any]) -> bool:
    return str(info.get("engineInfo") or info.get("clientVersion") or "").startswith("delta-rs")


@dataclass(frozen=True)
class Moves:
    """The files of one commit whose rows changed, without those that were only rearranged."""

    came: Mapping[str, int | None]
    """Path → rows of an added file, including those under its deletion vector."""
    hidden_after: Mapping[str, int]
    """Path → rows under the deletion vector of an added file."""
    hidden_before: Mapping[str, int]
    """Path → rows under the deletion vector of a removed file."""
    copied: int
    """Rows that a rewrite only carried over."""
    feed: tuple[str, ...]
    """Files of the Change Data Feed."""


_COPIED = (
    "numTargetRowsCopied", "numCopiedRows", "num_target_rows_copied", "num_copied_rows",
)  # fmt: skip
"""The numbers of carried-over rows in the metrics of Spark and delta-rs."""


def count_changes(commits: Iterable[Moves], known: Mapping[str, int | None]) -> int | None:
    """The number of rows that commits inserted and deleted, in their order; None if the log does
    not have it. `known`: path → rows of the files before the window, as far as known."""
    rows, total = dict(known), 0
    for commit in commits:
        rows |= commit.came
        changed = _of_one(commit, rows)
        if changed is None:
            return None
        total += changed
    return total


def _of_one(commit: Moves, rows: Mapping[str, int | None]) -> int | None:
    came, went = commit.hidden_after, commit.hidden_before
    if any(rows.get(path) is None for path in {*came, *went}):
        return None
    # A file whose vector grew is removed and added; its other rows stay.
    marked = sum(abs(came[path] - went[path]) for path in came.keys() & went.keys())
    new = sum((rows[path] or 0) - came[path] for path in came.keys() - went.keys())
    old = sum((rows[path] or 0) - went[path] for path in went.keys() - came.keys())
    # A rewrite carries rows over, which its metrics may or may not count; the difference of the
    # numbers is the minimum. DELETE by delta-rs is a rewrite that only deletes rows.
    return marked + max(abs(new - old), new + old - 2 * commit.copied)


def _rows(add: Action) -> int | None:
    return json.loads(add["stats"]).get("numRecords") if add.get("stats") else None


def _rows_under_vector(action: Action) -> int:
    return (action.get("deletionVector") or {}).get("cardinality", 0)
