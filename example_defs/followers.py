"""Waits for the stream tables of the demo, so that the year never runs away from a slow machine."""

from __future__ import annotations

import time
from pathlib import Path

from dagster_streamtables import Lake, load_tables
from dagster_streamtables.replication import TableStatus

_POLL_SECONDS = 2.0


class Followers:
    """The stream tables that a folder declares, below a root.

    Args:
        root: The lake's folder.
        folder: The folder of their `.sql` files.
        seconds: How old the first change may be that a table does not reflect yet.
    """

    def __init__(self, root: Path, folder: Path, *, seconds: float) -> None:
        self._lake, self._tables, self._seconds = Lake(root), load_tables(folder), seconds

    def wait(self) -> None:
        """Return when all of them have rows and none is too far behind; print what it waits for."""
        told = ""
        while waits := self._waits():
            if waits != told:
                print(f"waiting for {waits}", flush=True)
            told = waits
            time.sleep(_POLL_SECONDS)

    def _waits(self) -> str:
        statuses = self._lake.monitor.status(self._tables)
        found = [each for each in statuses if each.declared]  # not those of the org chart
        empty = [each.table for each in found if not each.populated]
        if empty:
            return (
                f"the first rows of {len(empty)} of {len(found)} stream tables: {', '.join(empty)}"
            )
        late = [each.table for each in found if self._is_late(each)]
        return f"stream tables that are behind: {', '.join(late)}" if late else ""

    def _is_late(self, status: TableStatus) -> bool:
        # One that failed, or that somebody suspended, does not hold the others up.
        goes_on = not (status.error or status.suspended)
        return goes_on and (status.staleness_seconds or 0) > self._seconds
