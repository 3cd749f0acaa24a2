"""Examine one table for what an erased commit leaves behind.

The commits of its log are replayed: do they, the checkpoints and the checksums fit together? Spark
writes a checksum beside each commit: the number of files, their size, the schema.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from deltalake.exceptions import TableNotFoundError

from dagster_streamtables.amounts import count
from dagster_streamtables.runtime.delta.table_locations import commit_file, files_below
from dagster_streamtables.runtime.doctor.findings import (
    Contradiction,
    Examination,
    Finding,
    Trace,
    finding,
)
from dagster_streamtables.runtime.doctor.log_records import (
    CommitRecord,
    LogFiles,
    LogState,
    Paths,
    checkpoint_state,
    log_files,
)
from dagster_streamtables.runtime.doctor.stray_files import (
    CommitTimeline,
    StoredFile,
    Strays,
    stored_files,
)
from dagster_streamtables.runtime.errors.error_translation import translate_log_errors
from dagster_streamtables.runtime.errors.table_errors import missing


def examine_table(
    location: str,
    name: str = "",
    storage_options: Mapping[str, str] | None = None,
    now: float | None = None,
) -> Examination:
    """Look for traces of erased commits in the log and the files of a table. Changes nothing.

    Args:
        location: The folder or URI of the table.
        name: Its name in queries.
        storage_options: What delta-rs needs to reach an object store.
        now: The present, in seconds since 1970; by default, this machine's.

    Raises:
        MissingSource: There is no table.
        DamagedTable: A commit or a checkpoint cannot be read.
        EnvironmentProblem: The folder or the store cannot be read.
    """
    name, paths = name or location, Paths(location)
    with translate_log_errors(location):
        try:
            files = files_below(location, storage_options)
            # Before the log: the files of a commit are written before the commit.
            stored = stored_files(files, paths)
            log = log_files(location, files, paths)
        except (TableNotFoundError, FileNotFoundError, NotADirectoryError) as error:
            raise missing(name, location) from error
        if log is None:
            raise missing(name, location)
        return _examine_log(name, log, stored, time.time() if now is None else now)


def _examine_log(name: str, log: LogFiles, stored: Sequence[StoredFile], now: float) -> Examination:
    replay, commits, lacking = Replay(log), list[CommitRecord](), set[int]()
    contradictions: list[Contradiction] = []
    for commit in log.commits():
        contradictions += replay.follow(commit)
        # Without the files, of which a log may name millions.
        commits.append(replace(commit, adds=[], removes=[], changes=[]))
        if commit.change_count > len(commit.changes):
            lacking.add(commit.version)
    contradictions += replay.finish()
    if not commits:  # dropped meanwhile
        raise missing(name, log.location)
    timeline = CommitTimeline([each for each in commits if each.version >= log.oldest])
    strays = Strays(log.files, timeline, now)
    for each in stored:
        if each.path not in replay.named:
            strays.add(each)
    found = [
        *gaps(log),
        *_contradiction_findings(contradictions, stored, timeline),
        *timeline.findings(),
        *strays.findings(lacking),
    ]
    found.sort(key=lambda each: (not each.sure, each.first, each.last))
    return Examination(
        name,
        log.location,
        log.oldest,
        log.newest,
        tuple(found),
        strays.recent,
        strays.aborted,
        strays.unjudged,
    )


def _contradiction_findings(
    contradictions: Sequence[Contradiction], stored: Sequence[StoredFile], timeline: CommitTimeline
) -> Iterator[Finding]:
    """The findings of contradictions, with fewer versions in doubt if files date the commit."""
    written = {each.path: each.written for each in stored} if contradictions else {}
    for each in contradictions:
        span = each.first, each.last
        times = [written[path] for path in each.found if path in written] if each.is_dated else []
        if times and not any(map(timeline.is_before, times)):
            firsts, lasts = zip(*map(timeline.after, times), strict=True)
            first, last = min(firsts), max(lasts)
            if span[0] <= last and first <= span[1]:
                span = max(first, span[0]), min(last, span[1])
        yield finding(each.trace, span, each.what, each.found, sure=each.sure)


class Checksums:
    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._agreed = log.oldest - 1
        """The newest version whose checksum was right."""
        self._known: set[str] = set()
        """What differed at the last checksum: an erased commit shows in all that follow."""

    def differences(self, commit: CommitRecord, state: LogState) -> Iterator[Contradiction]:
        path = self._log.checksums.get(commit.version)
        found = self._log.read_json(path) if path else {}
        if not found:
            return
        differing = set(_differing(found, state))
        new = differing - self._known
        self._known = differing
        if new:
            what = f"the checksum of version {commit.version} differs from the commits up to it"
            first = min(self._agreed + 1, commit.version)
            yield Contradiction(Trace.CHECKSUM, first, commit.version, what, new, sure=True)
        elif commit.id is not None and found.get("txnId") not in (None, commit.id):
            what = f"the checksum of version {commit.version} is of another commit"
            told = [f"id {found['txnId']}, not {commit.id}"]
            yield Contradiction(
                Trace.CHECKSUM, commit.version, commit.version, what, told, sure=True
            )
        if not differing:
            self._agreed = commit.version


def _differing(found: Mapping[str, Any], state: LogState) -> Iterator[str]:
    """How a checksum differs, in numbers that remain equal while the difference does."""
    for name, value in (("numFiles", len(state.live)), ("tableSizeBytes", state.size)):
        if isinstance(found.get(name), int) and found[name] != value:
            yield f"{name} is {found[name] - value:+} against the commits"
    if found.get("numMetadata", 1) != 1:
        yield f"numMetadata is {found['numMetadata']}"
    if _schema(found.get("metadata")) not in (None, _schema(state.metadata)):
        yield "another schema or other properties"
    if _versions(found.get("protocol")) not in (None, _versions(state.protocol)):
        yield "another protocol"


def _schema(metadata: Mapping[str, Any] | None) -> object:
    if not metadata:
        return None
    properties = metadata.get("configuration") or {}
    return (
        metadata.get("id"),
        json.loads(metadata.get("schemaString") or "null"),
        list(metadata.get("partitionColumns") or ()),
        {name: value for name, value in properties.items() if value is not None},
    )


def _versions(protocol: Mapping[str, Any] | None) -> object:
    if not protocol:
        return None
    features = (protocol.get(name) or () for name in ("readerFeatures", "writerFeatures"))
    numbers = (protocol.get(name) for name in ("minReaderVersion", "minWriterVersion"))
    return (*numbers, *map(sorted, features))


class Transactions:
    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}
        """Application → its newest number, and the version of that commit."""

    def begin(self, version: int, numbers: Mapping[str, int]) -> None:
        """Add the numbers in a checkpoint, unless earlier commits contain them."""
        for application, number in numbers.items():
            self._newest.setdefault(application, (number, version))

    def follow(self, commit: CommitRecord) -> Iterator[Contradiction]:
        for application, number in commit.transactions.items():
            newest, version = self._newest.get(application, (None, commit.version))
            if newest is not None and number <= newest and not commit.replaces:
                what = "the number of an application's transaction is not greater than before"
                told = f"{application}: {newest} in version {version}, {number} in {commit.version}"
                yield Contradiction(
                    Trace.TRANSACTION, version, commit.version, what, [told], sure=False
                )
            self._newest[application] = number, commit.version


class Replay:
    """Follows the commits in order.

    The state is known from commit 0 or from a checkpoint on. Each checkpoint replaces it, since
    readers begin there; so one erased commit is found once.
    """

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._unread = sorted(log.checkpoints)
        self._hint = log.read_json(log.last) if log.last else {}
        self._checksums = Checksums(log)
        self._transactions = Transactions()
        self._state: LogState | None = None
        self._reached = -1
        self._agreed = -1
        """The version of the last checkpoint."""
        self.named: set[str] = set()

    def follow(self, commit: CommitRecord) -> Iterator[Contradiction]:
        """The contradictions of a commit, and of a checkpoint of its version, to earlier ones."""
        while self._unread and self._unread[0] < commit.version:
            yield from self._begin(self._unread.pop(0))
        if commit.version == 0:
            self._state = LogState()
        elif commit.version != self._reached + 1:
            self._state = None
        if self._state is not None:
            yield from self._apply(self._state, commit)
        yield from self._transactions.follow(commit)
        self._reached = commit.version
        self.named.update(each.path for each in (*commit.adds, *commit.removes))
        self.named.update(commit.changes)
        if self._state is not None:
            yield from self._checksums.differences(commit, self._state)
        if self._unread and self._unread[0] == commit.version:
            yield from self._compare(self._unread.pop(0))

    def finish(self) -> Iterator[Contradiction]:
        """The contradictions of checkpoints that have no commit after them."""
        while self._unread:
            yield from self._begin(self._unread.pop(0))

    def _begin(self, version: int) -> Iterator[Contradiction]:
        """Go on with a checkpoint that has no commit: how it came about is unknown."""
        self._state = None
        yield from self._compare(version)
        self._reached = version

    def _compare(self, version: int) -> Iterator[Contradiction]:
        """Compare the state with the checkpoints of a version, and go on with theirs."""
        states = list(self._states(version))
        for name, held in states:
            self.named.update(held.live, held.removed)
            self._transactions.begin(version, held.transactions)
            if self._state is not None:
                yield from self._differences(self._state, held, version, name)
            self._state, self._agreed = held, version
        files = self._hint.get("numOfAddFiles")
        counts = [len(held.live) for _, held in states]
        if counts and version == self._hint.get("version") and files not in (None, *counts):
            what = f"the file that names the checkpoint of version {version} has another count"
            found = [f"{count(files, 'file')}, and the checkpoint has {counts[-1]:,}"]
            yield Contradiction(Trace.CHECKPOINT, version, version, what, found, sure=True)

    def _apply(self, state: LogState, commit: CommitRecord) -> Iterator[Contradiction]:
        added = {each.path for each in commit.adds}
        unknown, again, doubled = [], [], []
        for each in commit.removes:
            held = state.live.pop(each.path, None)
            if held is None and each.path not in added:
                (again if each.path in self.named else unknown).append(each.path)
            elif held is not None and each.vector not in (None, held[0]):
                unknown.append(each.path)
        for each in commit.adds:
            # Statistics and row ids are added by naming the file again, without a change of data.
            if each.changes_data and state.live.get(each.path, ("", 0))[0] == each.vector:
                doubled.append(each.path)
            state.live[each.path] = each.vector, each.size
        state.metadata = commit.metadata or state.metadata
        state.protocol = commit.protocol or state.protocol
        last = max(commit.version - 1, 0)
        span, said = (min(self._agreed + 1, last), last), f"version {commit.version}"
        if unknown:
            what = f"{said} removes files, or their deletion vectors, that no commit added"
            yield Contradiction(Trace.ACTION, *span, what, unknown, sure=True, is_dated=True)
        if again:
            what = f"{said} removes files that were already removed"
            yield Contradiction(Trace.ACTION, *span, what, again, sure=False)
        if doubled:
            what = f"{said} adds files that were already there"
            yield Contradiction(Trace.ACTION, *span, what, doubled, sure=True)

    def _differences(
        self, state: LogState, held: LogState, version: int, name: str
    ) -> Iterator[Contradiction]:
        ours, theirs = ({(p, v) for p, (v, _) in s.live.items()} for s in (state, held))
        paths = {path for path, _ in ours ^ theirs}
        if paths:
            what = f"{name} has other files than the commits up to its version"
            yield Contradiction(
                Trace.CHECKPOINT, min(self._agreed + 1, version), version, what, paths,
                sure=True, is_dated=True,
            )  # fmt: skip

    def _states(self, version: int) -> Iterator[tuple[str, LogState]]:
        """The states in the checkpoints of a version, each with the name of its first part."""
        for parts in self._log.checkpoints[version]:
            state = checkpoint_state(self._log, parts)
            if state is not None:
                yield parts[0].rsplit("/", 1)[-1], state


def gaps(log: LogFiles) -> Iterator[Finding]:
    newest = max(log.checkpoints, default=-1)
    absent: list[int] = []
    for version in range(newest + 1, log.newest + 1):
        compacted = any(first <= version <= last for first, last in log.compacted)
        if not (version in log.written or compacted or log.is_there(version)):
            absent.append(version)
        elif absent:
            paths, span = [commit_file(each) for each in absent], (absent[0], absent[-1])
            yield finding(Trace.GAP, span, "commits that are missing", paths, sure=True)
            absent = []
