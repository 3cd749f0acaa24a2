"""`Runs`: what is done to a replication in turn, and how that ended, as it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.begin import begin
from dagster_streamtables.replication.lifecycle.circles import overlaps, require_no_circle
from dagster_streamtables.replication.lifecycle.connect import publisher_of, unpublish
from dagster_streamtables.replication.lifecycle.errors import (
    DisabledReplication,
    ReplicationInUse,
    about,
    command,
    in_a_line,
    passes,
)
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import Hold, State, Store, hold
from dagster_streamtables.replication.lifecycle.work import Step, Targets, Work
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.runtime.errors.translate import last_word
from dagster_streamtables.runtime.lake import Lake

_Result = TypeVar("_Result")


@dataclass
class Runs:
    lake: Lake
    store: Store
    step: Step = field(default=lambda step: None)
    options: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """By replication, the storage options of a declaration that was given: they are not stored."""
    without_circle: dict[str, object] = field(default_factory=dict[str, object])
    """By replication, what was found to be in no circle."""

    def remember(self, replication: Replication) -> None:
        source = replication.publisher
        if source.storage_options is not None:
            self.options[replication.name] = source.storage_options

    def do(self, name: str, wait: float, act: Callable[[Work], _Result]) -> _Result:
        """Do something to a replication that is enabled, and store how it ended.

        Raises:
            ReplicationInUse: Another process does.
            DisabledReplication: It is disabled.
        """
        with hold(self.store, name, wait=wait) as mine:
            _require_enabled(mine.state)
            begun = time.monotonic()
            try:
                work = self._work(mine)
                with last_word():
                    found = act(work)
            except ReplicationInUse:
                raise
            except Exception as error:
                failed = _failure(error)
                mine.last = failed
                if isinstance(error, StreamTablesError):
                    raise about(error, name) from error
                raise
            [*troubles] = work.troubles.values()
            if troubles:
                mine.last = _failure(troubles[0])
            else:
                mine.last = _succeeded(time.monotonic() - begun)
            return found

    def begin(self, name: str) -> None:
        """Begin with a replication that was just stored; if it cannot begin, take it back."""
        with hold(self.store, name) as mine:
            try:
                self._begin(mine)
            except BaseException as error:
                self._take_back(mine)
                if isinstance(error, StreamTablesError):
                    raise about(error, name) from error
                raise

    def require_no_circle(self, replication: Replication, published: Collection[str]) -> None:
        """
        Raises:
            InvalidDefinition: It would send rows round in a circle.
        """
        options = self.options.get(replication.name)
        require_no_circle(replication, published, self.lake, options)

    def _looked_for_circles(self, state: State, published: Collection[str]) -> None:
        """Once for each process, and again when other tables are published: a circle that somebody
        else closes is refused to him."""
        this = state.id, state.replication.to_json(), frozenset(published)
        if self.without_circle.get(state.replication.name) != this:
            self.require_no_circle(state.replication, published)
            self.without_circle[state.replication.name] = this

    def publisher(self, state: State) -> Publisher:
        reader = f"replication {state.replication.name} of {self.lake.root} ({state.id[:8]})"
        options = self.options.get(state.replication.name)
        return publisher_of(state.replication, self.lake, reader, options)

    def _begin(self, mine: Hold) -> None:
        work, declared = self._work(mine), mine.state.replication
        if declared.publisher.publications:
            published = work.publisher.offer().require()
            self.require_no_circle(declared, published)
            work.targets.require_fit(published, declared)
        work.targets.require_fit(begin(work), declared)
        for error in work.troubles.values():
            raise error

    def _take_back(self, mine: Hold) -> None:
        with suppress(Exception):  # report the first error
            state = mine.state
            if state.begun:
                publisher = self.publisher(state)
                if state.replication.create_slot and state.slot is not None:
                    publisher.drop_slot(state.slot)
                unpublish(publisher, state)
        with suppress(Exception):
            self.store.change(mine.name, lambda state: None)

    def _work(self, mine: Hold) -> Work:
        publisher = self.publisher(mine.state)
        names = self.lake.access.catalog.names
        return Work(
            mine,
            publisher,
            Targets(self.lake, mine.name, mine.state.id, publisher.origin),
            lambda tables: overlaps(mine.name, self.store.all(), names, tables),
            lambda published: self._looked_for_circles(mine.state, published),
            self.step,
        )


def _require_enabled(state: State) -> None:
    if not state.enabled:
        raise DisabledReplication(
            f'replication "{state.replication.name}" is disabled',
            why=state.error or "somebody disabled it, or it was created so",
            fix="mend what is wrong, and enable it: " + command("enable", state.replication.name),
        )


def _failure(error: Exception) -> Callable[[State], State]:
    now, said, lasts = datetime.now(UTC).isoformat(), in_a_line(error), not passes(error)

    def failed(state: State) -> State:
        stops = state.replication.disable_on_error and lasts
        return replace(
            state,
            enabled=state.enabled and not stops,
            error=said,
            errors=state.errors + 1,
            failed_at=now,
        )

    return failed


def _succeeded(seconds: float) -> Callable[[State], State]:
    now = datetime.now(UTC).isoformat()

    def succeeded(state: State) -> State:
        longest = max(state.longest_refresh, round(seconds, 3))
        return replace(state, error=None, errors=0, refreshed_at=now, longest_refresh=longest)

    return succeeded
