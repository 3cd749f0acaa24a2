"""`OtherDefinitions`: tables that others refresh by another definition than the one loaded here.

A definition that is new here rebuilds its table. Two things could make that go on for ever: runs of
this code location that load another text than the process that asks for them, since a file was
edited in between; and another deployment over the same lake. What the table stores after a refresh
was asked for tells the two apart.

A stored table without a definition here is orphaned: its definition was removed or renamed, unless
another deployment has it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.log import logger
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.refresh_work import REDEFINED, HeadWithState, RefreshWork

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_REBUILDS = 2
"""How often a table is rebuilt for one definition: once when it is new, and once more after a
refresh by an older one that was still running."""


@dataclass(frozen=True)
class _Foreign:
    """The rows that a rebuild is to replace. They are the same rows, updated, as long as their
    definition is the same and no refresh has rebuilt them."""

    query: str
    rebuilt: int

    @classmethod
    def of(cls, stored: HeadWithState) -> _Foreign:
        state = stored.state
        return cls(state.query, state.counts.get(str(Action.REINITIALIZE), 0))


@dataclass(frozen=True)
class _Request:
    """The last rebuild that was asked for."""

    instead: _Foreign
    at: datetime
    times: int


class OtherDefinitions:
    """What one process remembers from one decision to the next. Used by one thread at a time."""

    def __init__(self, orphans: Collection[str] = ()) -> None:
        self.orphans = tuple(orphans)
        self._asked: dict[str, _Request] = {}
        self._followed: dict[str, str] = {}
        """The definition by which the runs of this code location refresh a table."""
        self.notes: dict[str, str] = {}
        """What to tell of tables that are refreshed nevertheless."""

    def judge(
        self, name: str, stored: HeadWithState | None, found: RefreshWork, last: datetime | None
    ) -> tuple[RefreshWork, str]:
        """The work on a table that may be done now, and why it must not be done; empty if it may.
        `found` is the work by the definition here, and `last` the time of the last known
        refresh."""
        self.notes.pop(name, None)
        if stored is None or not found.redefined:
            return found, ""
        asked, rows = self._asked.get(name), _Foreign.of(stored)
        same = asked is not None and asked.instead == rows
        if asked is not None and same and last is not None and last > asked.at:
            self._followed[name] = rows.query
        if self._followed.get(name) == rows.query:
            self.notes[name] = (
                f"{name} is refreshed by another definition than the one that is loaded here: "
                "reload the code location"
            )
            reasons = tuple(each for each in found.reasons if each != REDEFINED)
            return replace(found, reasons=reasons, redefined=False), ""
        if asked is not None and not same and asked.times >= _REBUILDS:
            return found, (
                f"it was rebuilt {asked.times} times by the definition that is loaded here, and "
                f"version {stored.committed} is by another one again: stop the deployment that "
                "refreshes it, too, or reload this code location if it is the older one"
            )
        return found, ""

    def ask(self, name: str, stored: HeadWithState | None, now: datetime) -> None:
        """A refresh is asked for, since a table has rows of another definition."""
        if stored is None:
            return
        before, rows = self._asked.get(name), _Foreign.of(stored)
        times = before.times if before is not None else 0
        again = before is not None and before.instead == rows
        self._asked[name] = _Request(rows, now, times + (not again))

    def forget(self, name: str) -> None:
        """The definition here is a new one."""
        self._asked.pop(name, None)
        self._followed.pop(name, None)


def undefined_here(lake: Lake, defined: Collection[str]) -> list[str]:
    """The stored stream tables that are not among those defined; none in an object store, where
    listing and reading thousands of logs would take minutes."""
    if is_remote(lake.root):
        return []
    try:
        return [name for name in lake.retention.stream_tables() if name not in defined]
    except Exception as error:  # what cannot be listed must not stop the refreshes
        logger.warning("whether tables are orphaned is not known: %s", error)
        return []
