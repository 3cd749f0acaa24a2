"""What came to a source between two versions, as its log tells it.

    none        no commit
    files       commits that only rearranged files, or changed only properties
    appended    rows were only added: the change is the rows of the added files
    feed        the table wrote a Change Data Feed over the whole window
    snapshots   anything else: the rows of the files that one end has and the other has not

Which files came and which went is the difference of the two ends, never a sum over the commits: a
commit may add a file that is there already, as those do that switch row tracking on or compute
statistics anew. The commits say the rest: whether rows moved at all, and how many.

Nothing here reads data; what is needed of a file is in the log, or in the footer of a feed file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import (
    Action,
    Commit,
    by_kind,
    data_changes,
    info_of,
)
from dagster_streamtables.runtime.delta.capture import Capture
from dagster_streamtables.runtime.delta.changed_rows import (
    Moves,
    changed_rows,
    moves_of,
)
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.live_files import DataFile, live_files, total_rows


@dataclass(frozen=True)
class SourceChange:
    """The change of one source between two of its versions."""

    before: int
    after: int
    capture: Capture
    rows: int | None = 0
    """Rows that came and rows that went, as far as the log knows."""
    added: tuple[DataFile, ...] = ()
    """For ``appended``: the files. For ``snapshots``: those that only `after` has, and those under
    another deletion vector at either end."""
    removed: tuple[DataFile, ...] = ()
    """For ``snapshots``: those that only `before` has, and those under another vector."""
    vectors: bool = False
    """Files are under deletion vectors."""
    lost: bool = False
    """A commit of the window is gone from the log, or the version that it begins with."""
    held: int | None = None
    """Rows of the table at `before`, as far as they are known."""
    fed: tuple[tuple[DataFile, int | None], ...] = ()
    """For ``feed``: its files in order, each with the weight of its rows; None for a file that says
    of each row what it is."""
    by_files: Callable[[], SourceChange] | None = None
    """For ``feed``: finds the same window by its files."""

    @property
    def moved(self) -> bool:
        return self.capture not in (Capture.NONE, Capture.FILES)

    @property
    def without_feed(self) -> SourceChange:
        return self if self.by_files is None else replace(self.by_files(), held=self.held)


def change_between(log: TableLog, before: int, after: int | None = None) -> SourceChange:
    """What the log says of the window from `before` to `after`, or to the version of `log`."""
    after = log.version if after is None else after
    if before == after:
        return SourceChange(before, after, Capture.NONE)
    seen = _read(log, before, after)
    if seen is None:
        return _lost(before, after)
    if not seen.moved:
        return SourceChange(before, after, Capture.FILES)

    def by_files() -> SourceChange:
        return _by_files(log, before, after, seen)

    if log.has_feed and not seen.redefined and not seen.misfed and seen.takes_away:
        rows = seen.feed_rows(log, before)
        fed, vectors = tuple(seen.fed), bool(seen.under_vectors)
        return SourceChange(
            before, after, Capture.FEED, rows, fed=fed, vectors=vectors, by_files=by_files
        )
    return by_files()


def rows_moved(log: TableLog, before: int, after: int | None = None) -> bool:
    """Whether rows came or went in a window; also where the log no longer tells."""
    after = log.version if after is None else after
    if before == after:
        return False
    seen = _read(log, before, after)
    return seen is None or seen.moved


def _lost(before: int, after: int) -> SourceChange:
    return SourceChange(before, after, Capture.SNAPSHOTS, rows=None, lost=True)


def _by_files(log: TableLog, before: int, after: int, seen: _CommitTotals) -> SourceChange:
    """The window as the difference of the files at its ends."""
    first = log.at(before)
    last = log if log.version == after else log.at(after)
    if first is None or last is None:
        return _lost(before, after)
    old, new = live_files(first), live_files(last)
    # What a vector leaves of a file is not looked up: both ends are read, and cancel if equal.
    both = {path for path in seen.under_vectors if path in old and path in new}
    added = tuple(file for path, file in new.items() if path not in old or path in both)
    removed = tuple(file for path, file in old.items() if path not in new or path in both)
    vectors = any(file.path in seen.under_vectors for file in (*added, *removed))
    if not removed and not vectors:
        return SourceChange(before, after, Capture.APPENDED, total_rows(added), added)
    rows = changed_rows(seen.moves, _rows_by_path(old))
    return SourceChange(before, after, Capture.SNAPSHOTS, rows, added, removed, vectors)


def _rows_by_path(files: Mapping[str, DataFile]) -> dict[str, int | None]:
    return {path: file.rows for path, file in files.items()}


def _read(log: TableLog, before: int, after: int) -> _CommitTotals | None:
    """The commits of a window, added up; None where one of them is gone."""
    if before > after:
        return None
    seen = _CommitTotals()
    for _, commit in log.commits(before, after):
        if commit is None:
            return None
        seen.add(commit)
    return seen


class _CommitTotals:
    """The commits of a window, added up."""

    def __init__(self) -> None:
        self.moves: list[Moves] = []
        self.fed: list[tuple[DataFile, int | None]] = []
        self.under_vectors: set[str] = set()
        """The paths of files that a commit named with a deletion vector."""
        self.moved = self.takes_away = self.redefined = self.misfed = False

    def add(self, commit: Commit) -> None:
        kinds, info = by_kind(commit), info_of(commit)
        adds, removes, feed = (kinds.get(kind, []) for kind in ("add", "remove", "cdc"))
        moves = moves_of(adds, removes, feed, info)
        self.moves.append(moves)
        self.fed += _fed(adds, removes, feed)
        self.moved |= bool(moves.came or moves.hidden_before or feed)
        self.takes_away |= bool(removes or feed)
        self.redefined |= "metaData" in kinds
        self.misfed |= bool(feed) and _leaves_rows_out(info)
        named = (each for each in (*adds, *removes) if each.get("deletionVector") is not None)
        self.under_vectors |= {unquote(each["path"]) for each in named}

    def feed_rows(self, log: TableLog, before: int) -> int | None:
        """Rows that the feed tells; of a commit without a feed of its own, those of its files."""
        fed = [path for each in self.moves for path in each.feed]
        unfed = [each for each in self.moves if not each.feed]
        rows = changed_rows(unfed, {})
        if rows is None and (first := log.at(before)) is not None:
            rows = changed_rows(unfed, _rows_by_path(live_files(first)))
        try:
            return None if rows is None else rows + sum(map(log.rows_in, fed))
        except OSError:
            return None


def _fed(
    adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action]
) -> list[tuple[DataFile, int | None]]:
    """The feed of one commit: files of its own if it wrote any, else the files that came or went.

    That is the protocol's rule, in its section "Reader Requirements for AddCDCFile".
    """
    kinds = [(feed, None)] if feed else [(data_changes(removes), -1), (data_changes(adds), 1)]
    return [(_file(action), weight) for actions, weight in kinds for action in actions]


def _file(action: Action) -> DataFile:
    return DataFile(unquote(action["path"]), action.get("partitionValues") or {}, None)


def _leaves_rows_out(info: Mapping[str, Any]) -> bool:
    """Whether the commit's feed cannot be trusted.

    UPDATE in delta-rs (1.6.6) writes the difference of two sets into the feed: with
    ``SET x = x + 1`` over rows (1) and (2), the row (2) is both an old and a new one, and both its
    entries are missing, whatever the number of copies. Its DELETE and MERGE are right, and so is
    everything that Spark writes.
    """
    engine = str(info.get("engineInfo") or info.get("clientVersion") or "")
    return info.get("operation") == "UPDATE" and engine.startswith("delta-rs")
