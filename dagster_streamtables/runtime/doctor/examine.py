"""Looks at one table for what an erased commit leaves behind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from deltalake.exceptions import TableNotFoundError

from dagster_streamtables.runtime.delta.log_paths import commit_file
from dagster_streamtables.runtime.delta.names import files_below
from dagster_streamtables.runtime.doctor.findings import (
    Contradiction,
    Examination,
    Finding,
    Trace,
    finding,
)
from dagster_streamtables.runtime.doctor.log_files import LogFiles, log_files
from dagster_streamtables.runtime.doctor.paths import Paths
from dagster_streamtables.runtime.doctor.replay import Replay
from dagster_streamtables.runtime.doctor.table_files import StoredFile, Strays, stored_files
from dagster_streamtables.runtime.doctor.timeline import CommitTimeline, Stamp, merge_ranges, stamp
from dagster_streamtables.runtime.errors.tables import missing
from dagster_streamtables.runtime.errors.translate import translate_log_errors


def gaps(log: LogFiles) -> Iterator[Finding]:
    newest = max(log.checkpoints, default=-1)
    absent: list[int] = []
    for version in range(newest + 1, log.newest + 1):
        if not _has_commit(log, version):
            absent.append(version)
        elif absent:
            yield _gap(absent)
            absent = []


def _has_commit(log: LogFiles, version: int) -> bool:
    if version in log.written or any(first <= version <= last for first, last in log.compacted):
        return True
    return log.is_there(version)


def _gap(versions: list[int]) -> Finding:
    paths = [commit_file(version) for version in versions]
    span = versions[0], versions[-1]
    return finding(Trace.GAP, span, "commits that are missing", paths, sure=True)


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
        now: The present, in seconds since 1970; by default, by this machine's clock.

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
    replay, stamps, lacking = Replay(log), list[Stamp](), set[int]()
    contradictions: list[Contradiction] = []
    for commit in log.commits():
        contradictions += replay.follow(commit)
        stamps.append(stamp(commit))
        if commit.change_count > len(commit.changes):
            lacking.add(commit.version)
    contradictions += replay.finish()
    if not stamps:  # dropped meanwhile
        raise missing(name, log.location)
    timeline = CommitTimeline([each for each in stamps if each.version >= log.oldest])
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
    """The findings of contradictions, with fewer versions in doubt if files tell when it was."""
    written = {each.path: each.written for each in stored} if contradictions else {}
    for each in contradictions:
        span = each.first, each.last
        times = [written[path] for path in each.found if path in written] if each.is_dated else []
        if times and not any(map(timeline.is_before, times)):
            first, last = merge_ranges(map(timeline.after, times))
            if span[0] <= last and first <= span[1]:
                span = max(first, span[0]), min(last, span[1])
        yield finding(each.trace, span, each.what, each.found, sure=each.sure)
