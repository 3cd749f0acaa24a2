"""Commits that are missing from a log although no checkpoint stands for them."""

from __future__ import annotations

from collections.abc import Iterator

from dagster_streamtables.runtime.delta.log_paths import commit_file
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding
from dagster_streamtables.runtime.doctor.log_files import LogFiles


def gaps(log: LogFiles) -> Iterator[Finding]:
    newest = max(log.checkpoints, default=-1)
    absent: list[int] = []
    for version in range(newest + 1, log.newest + 1):
        if not _is_known(log, version):
            absent.append(version)
        elif absent:
            yield _gap(absent)
            absent = []


def _is_known(log: LogFiles, version: int) -> bool:
    if version in log.written or any(first <= version <= last for first, last in log.compacted):
        return True
    return log.is_there(version)


def _gap(versions: list[int]) -> Finding:
    paths = [commit_file(version) for version in versions]
    span = versions[0], versions[-1]
    return finding(Trace.GAP, span, "commits that are missing", paths, sure=True)
