"""Stored files that no commit names: of an erased commit, or of a write that was aborted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dagster_streamtables.runtime.delta.parquet_files import opened_parquet
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding
from dagster_streamtables.runtime.doctor.table_files import StoredFile
from dagster_streamtables.runtime.doctor.timeline import Timeline

_YOUNG = 3600
_SAID = {
    Trace.DATA_FILE: "data files that no commit names",
    Trace.CHANGE_FILE: "change files that no commit names",
}


class Strays:
    def __init__(self, files: Any, timeline: Timeline, now: float) -> None:
        """
        Args:
            files: The table's folder as a pyarrow file system.
            timeline: The commits of the table.
            now: The present, in seconds since 1970.
        """
        self._files = files
        self._timeline = timeline
        self._now = now
        self.recent = 0
        self.aborted = 0
        self.unjudged = 0
        self._found: dict[tuple[tuple[int, int], Trace], list[str]] = defaultdict(list)

    def add(self, file: StoredFile) -> None:
        if self._now - file.written < _YOUNG or self._timeline.is_after(file.written):
            self.recent += 1
        elif self._timeline.is_before(file.written):
            self.unjudged += 1
        elif self._has_rows(file):
            versions = self._timeline.in_doubt(file.written)
            if versions is None:
                self.aborted += 1
                return
            kind = Trace.CHANGE_FILE if file.is_change else Trace.DATA_FILE
            self._found[versions, kind].append(file.shown)

    def findings(self, lacking: set[int]) -> Iterator[Finding]:
        """The files by the versions in doubt.

        Args:
            lacking: The versions whose commits name fewer change files than they wrote.
        """
        for (versions, trace), paths in sorted(self._found.items()):
            of_one = trace is Trace.CHANGE_FILE and any(
                version in lacking for version in range(versions[0], versions[1] + 1)
            )
            yield finding(trace, versions, _SAID[trace], paths, sure=of_one)

    def _has_rows(self, file: StoredFile) -> bool:
        """Whether a commit may have named a file.

        Spark names no file without rows, which a DELETE of all rows of a file writes (4.1). A file
        without a footer is of a writer that was killed while it wrote.
        """
        import pyarrow as pa

        try:
            with opened_parquet(self._files, file.shown) as opened:
                return opened.metadata.num_rows > 0
        except (pa.ArrowInvalid, FileNotFoundError):
            return False
