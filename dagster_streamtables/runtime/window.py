"""What came to a source between two versions, as its log tells it.

    none        no commit
    files       commits that only rearranged files, or changed only properties
    appended    rows were only added: the change is the rows of the added files
    feed        the table wrote a Change Data Feed over the whole window
    snapshots   anything else: the rows of the files that one end has and the other has not

Nothing here reads data; what is needed of a file is in the log, or in the footer of a feed file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta_log import Commit, TableLog


@dataclass(frozen=True)
class DataFile:
    path: str
    """Relative to the table, or absolute, decoded."""
    partition: Mapping[str, str | None]
    rows: int | None
    """As far as the log says so; it does not of a file that went."""


@dataclass(frozen=True)
class SourceChange:
    """The change of one source between two of its versions."""

    before: int
    after: int
    capture: str
    rows: int | None = 0
    """Rows that came and rows that went, as far as the log knows."""
    added: tuple[DataFile, ...] = ()
    """For ``appended``: the files. For ``snapshots``: those that only `after` has."""
    removed: tuple[DataFile, ...] = ()
    """For ``snapshots``: those that only `before` has."""
    vectors: bool = False
    """A deletion vector came or went: of a file, other rows are left at either end."""
    lost: bool = False
    """A commit of the window is gone from the log."""

    held: int | None = None
    """Rows of the table at `before`, as far as they are known."""
    feedless: SourceChange | None = None
    """For ``feed``: the same window by its files."""

    @property
    def moved(self) -> bool:
        return self.capture not in ("none", "files")

    @property
    def without_feed(self) -> SourceChange:
        return self.feedless or self


def change_between(log: TableLog, before: int, after: int | None = None) -> SourceChange:
    """What the log says of the window from `before` to `after`, or to the version of `log`."""
    after = log.version if after is None else after
    if before == after:
        return SourceChange(before, after, "none")
    if before > after:
        return SourceChange(before, after, "snapshots", rows=None, lost=True)
    seen = _Window(log)
    for _, commit in log.commits(before, after):
        if commit is None:
            return SourceChange(before, after, "snapshots", rows=None, lost=True)
        seen.add(commit)
    files = tuple(seen.added.values())
    if not seen.moved:
        return SourceChange(before, after, "files")
    if not seen.removed and not seen.rearranged and not seen.vectors:
        return SourceChange(before, after, "appended", _sum(each.rows for each in files), files)
    removed = tuple(sorted(seen.removed.values(), key=lambda file: file.path))
    by_files = SourceChange(
        before, after, "snapshots", seen.changed_rows, files, removed, seen.vectors
    )
    if log.has_feed and not seen.redefined and not seen.misfed:
        return SourceChange(before, after, "feed", seen.feed_rows, feedless=by_files)
    return by_files


class _Window:
    """The commits of a window, added up."""

    def __init__(self, log: TableLog) -> None:
        self.log = log
        # By path, what one end has and the other has not. Files that a commit only rearranged
        # count here too: a file that came may already have been compacted into another.
        self.added: dict[str, DataFile] = {}
        self.removed: dict[str, DataFile] = {}
        self.moved = self.rearranged = self.redefined = self.vectors = self.misfed = False
        self.feed_rows: int | None = 0
        self.changed_rows: int | None = 0

    def add(self, commit: Commit) -> None:
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for action in commit:
            for kind, body in action.items():
                kinds.setdefault(kind, []).append(body)
        self.redefined |= "metaData" in kinds
        adds, removes, feed = (kinds.get(kind, []) for kind in ("add", "remove", "cdc"))
        self.misfed |= bool(feed) and _leaves_rows_out(kinds.get("commitInfo", []))
        self._move(adds, removes)
        data_adds, data_removes = _data(adds), _data(removes)
        self.rearranged |= len(data_adds) + len(data_removes) < len(adds) + len(removes)
        self.moved |= bool(data_adds or data_removes or feed)
        changed = _changed_rows(data_adds, data_removes, kinds.get("commitInfo", []))
        self.changed_rows = _plus(self.changed_rows, changed)
        self.feed_rows = _plus(self.feed_rows, self._feed_rows(feed) if feed else changed)

    def _move(self, adds: list[Mapping[str, Any]], removes: list[Mapping[str, Any]]) -> None:
        self.vectors |= any(each.get("deletionVector") is not None for each in (*adds, *removes))
        for each in removes:
            path = unquote(each["path"])
            if self.added.pop(path, None) is None:
                self.removed[path] = DataFile(path, each.get("partitionValues") or {}, None)
        for each in adds:
            path = unquote(each["path"])
            self.added[path] = DataFile(path, each.get("partitionValues") or {}, _rows(each))

    def _feed_rows(self, feed: list[Mapping[str, Any]]) -> int | None:
        try:
            return sum(self.log.rows_in(unquote(each["path"])) for each in feed)
        except OSError:
            return None


def _rows(add: Mapping[str, Any]) -> int | None:
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    rows = stats.get("numRecords")
    vector = add.get("deletionVector") or {}
    return None if rows is None else rows - vector.get("cardinality", 0)


def _leaves_rows_out(infos: list[Mapping[str, Any]]) -> bool:
    """Whether the commit's feed cannot be trusted.

    UPDATE in delta-rs (1.6.6) writes the difference of two sets into the feed: with
    ``SET x = x + 1`` over rows (1) and (2), the row (2) is both an old and a new one, and both its
    entries are missing, whatever the number of copies. Its DELETE and MERGE are right, and so is
    everything that Spark writes.
    """
    info = infos[0] if infos else {}
    engine = str(info.get("engineInfo") or info.get("clientVersion") or "")
    return info.get("operation") == "UPDATE" and engine.startswith("delta-rs")


def _data(actions: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in actions if each.get("dataChange", True)]


def _changed_rows(
    adds: list[Mapping[str, Any]], removes: list[Mapping[str, Any]], infos: list[Mapping[str, Any]]
) -> int | None:
    """Rows that came or went with one commit, at most; rows carried over do not count.

    The log does not say how many rows a removed file had. A rewrite removes about as many as it
    adds; a commit that only removes is of unknown size.
    """
    came = _sum(_rows(each) for each in adds)
    if not removes or came is None:
        return came
    return max(0, 2 * (came - _copied_rows(infos))) if adds else None


def _copied_rows(infos: list[Mapping[str, Any]]) -> int:
    """Rows that a rewrite only carried over, under the names that Spark and delta-rs give them."""
    metrics = (infos[0].get("operationMetrics") or {}) if infos else {}
    names = ("numTargetRowsCopied", "numCopiedRows", "num_target_rows_copied", "num_copied_rows")
    return sum(int(metrics.get(name) or 0) for name in names)


def _sum(counts: Any) -> int | None:
    total: int | None = 0
    for count in counts:
        total = _plus(total, count)
    return total


def _plus(total: int | None, count: int | None) -> int | None:
    return None if total is None or count is None else total + count
