"""Rename a stream table: its stored rows, history and control continue under another name.

The declaration already has the new name. A commit without rows stores a state with the new name;
then the folder of the table is renamed, which is atomic. A process that is killed before that
leaves the old table, which can still be refreshed; later, the new one. The states of stream tables
that read it contain its name, so a commit in each of them follows. A second call finishes the
first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dagster_streamtables.compiler import Plan
from dagster_streamtables.errors import ConflictingCommit, RefusedOperation, StreamTablesError
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.drop import require_stream_table
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.refresh_work import fingerprint_of, same_meaning
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog, over_another_source
from dagster_streamtables.runtime.model.table_state import (
    RefreshRecord,
    StreamTableState,
    TableWithState,
    application,
    state_of,
)
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.monitor import Monitor
from dagster_streamtables.runtime.refresh.completion import commit_once
from dagster_streamtables.runtime.refresh.refresh_job import plan_query, prepare
from dagster_streamtables.runtime.storage import writer
from dagster_streamtables.runtime.storage.commit_target import CommitTarget


@dataclass(frozen=True)
class RenameResult:
    """A renamed stream table."""

    table: str
    """Its new name."""
    former: str
    location: str
    version: int
    rows: int | None
    """None if its log does not have the number."""
    bytes: int
    readers: tuple[str, ...]
    """The stream tables of the same root that read it."""
    rebuilt: tuple[str, ...]
    """The readers whose next refresh runs their query again: more than the name changed in it, or
    its text uses the name elsewhere, or it is in another dialect."""


@dataclass(frozen=True)
class Renaming:
    """The rename of one stream table below a root."""

    access: Access
    controls: Controls
    monitor: Monitor
    tables: Mapping[str, StreamTable]
    """The declarations by name, with their views."""
    old: str
    new: str

    @property
    def catalog(self) -> TableCatalog:
        return self.access.catalog

    def rename(self) -> RenameResult:
        """
        Raises:
            MissingSource: No table has the old name.
            RefusedOperation: The rename is impossible, or would lose something.
            ConflictingCommit: A refresh committed at the same time; nothing was renamed.
            InvalidDefinition: The declaration of the new name is invalid.
        """
        self._require_local()
        self._require_declarations()
        log = self.catalog.newest(self.old)
        if log is not None:
            self._require_free()
            require_stream_table(self.old, log)
            self._require_no_followers()
            self._move(self._with_new_name(log))
        elif not self._has_new_name():
            raise self.catalog.missing(self.old)
        readers = self.monitor.retention.readers(self.old)
        for each in readers:
            self._rename_source_of(each)
        self.controls.forget(self.old)
        return self._result()

    @property
    def _places(self) -> tuple[Path, Path]:
        location = self.catalog.names.location
        return Path(location(self.old)), Path(location(self.new))

    def _has_new_name(self) -> bool:
        """Whether the table of the new name had the old one, by its transactions."""
        log = self.catalog.newest(self.new)
        return log is not None and log.transaction(application(self.old)) is not None

    def _with_new_name(self, log: TableLog) -> TableLog:
        """The table after a commit whose state has the new name."""
        declared = self.tables[self.new]
        try:
            job = prepare(replace(declared, name=self.old), self.catalog, until=None)
        except StreamTablesError as error:
            raise error.within(declared.file or "", declared.line).about(self.new) from None
        last = job.last_refresh
        assert last is not None
        if not same_meaning(last.state.query, job.fingerprint):
            raise RefusedOperation(
                f'"{self.new}" is declared with another query than that of "{self.old}"',
                where=log.location,
                why="the stored rows are the result of the other query",
                fix=f"let the next refresh create {self.new}, and drop {self.old}; or declare "
                f"{self.new} with the query of {self.old}, and change it after the rename",
            )
        return self._commit(last, _following(last, self.new, f'renamed from "{self.old}"'))

    def _rename_source_of(self, reader: str) -> None:
        """Commit a state of a reader in which its source has the new name."""
        stored = self.catalog.table_at(self.catalog.names.own_location(reader))
        last = stored.refreshed if stored is not None else None
        if last is None or self.old not in last.state.sources:  # it reads the table by its path
            return
        reason = f'its source "{self.old}" was renamed to "{self.new}"'
        state = _following(last, reader, reason)
        sources = {
            self.new if name == self.old else name: each for name, each in state.sources.items()
        }
        state = replace(state, sources=sources).with_fingerprints(self._fingerprints(reader))
        self._commit(last, state)

    def _fingerprints(self, reader: str) -> dict[str, str]:
        """Fingerprint of a definition that reads the old name → the fingerprint of the declared one
        that differs from it in that name only."""
        declared = self.tables.get(reader)
        # A reader that is to be renamed next is declared under its own new name.
        free = (each for each in self.tables.values() if self.catalog.newest(each.name) is None)
        found: dict[str, str] = {}
        for table in free if declared is None else [declared]:
            former = over_another_source(table, self.new, self.old)
            if former == table or self.old in table.sources:
                continue
            try:
                plans = self._plans(table, self.new), self._plans(former, self.old)
            except StreamTablesError:  # its own refresh reports it
                continue
            names = zip(*plans, strict=True)
            found |= {fingerprint_of(former, q): fingerprint_of(table, p) for p, q in names}
        return found

    def _plans(self, table: StreamTable, name: str) -> tuple[Plan | None, ...]:
        """The plans of a table that reads the renamed one by a name."""
        logs = {s: self.catalog.newest(self.new if s == name else s) for s in table.sources}
        columns = {s: visible_types(log.columns) for s, log in logs.items() if log is not None}
        plan = plan_query(table, columns)[1]
        return plan, plan.whole if plan is not None else None, None

    def _commit(self, last: TableWithState, state: StreamTableState) -> TableLog:
        log = last.log
        options = self.catalog.logs.storage_options
        target = CommitTarget(log.location, state, None, options, log.version, log.row_count or 0)
        inputs = Inputs(lambda: self.access.session(state.table), self.catalog.table_at)
        try:
            with closing(inputs):
                return commit_once(inputs, target, lambda: writer.advance(log, target, inputs))[1]
        except ConflictingCommit as error:
            raise error.with_parts(fix="rename again, which finishes what is left to do") from error

    def _move(self, log: TableLog) -> None:
        """Rename the folder. The control is copied before, lest a suspended table runs."""
        self.controls.copy(self.old, self.new)
        before, after = self._places
        after.parent.mkdir(parents=True, exist_ok=True)
        try:
            before.rename(after)
        except OSError:
            self._require_free()  # a refresh may have created it meanwhile
            raise
        for place in (before, after):
            self.catalog.logs.forget(str(place))

    def _result(self) -> RenameResult:
        log = self.catalog.newest(self.new)
        assert log is not None
        readers = self.monitor.retention.readers(self.new)
        return RenameResult(
            table=self.new,
            former=self.old,
            location=log.location,
            version=log.version,
            rows=log.row_count,
            bytes=sum(log.file_sizes),
            readers=readers,
            rebuilt=tuple(each for each in readers if self._needs_rebuild(each)),
        )

    def _needs_rebuild(self, reader: str) -> bool:
        declared, log = self.tables.get(reader), self.catalog.newest(reader)
        state = None if log is None else state_of(reader, log)
        if declared is None or state is None:
            return False
        return not same_meaning(state.query, f"{declared.meaning}.")

    def _require_local(self) -> None:
        if is_remote(self.catalog.names.root):
            raise RefusedOperation(
                f'"{self.old}" cannot be renamed: it is in an object store',
                where=self.catalog.names.own_location(self.old),
                why="a store cannot rename a folder in one step, and readers would meet half a "
                "table",
                fix=f"declare it under its stored name (-- name: {self.old}, in a .sql file), or "
                f"let the next refresh create {self.new}, and drop {self.old}",
            )

    def _require_declarations(self) -> None:
        if self.new not in self.tables:
            raise RefusedOperation(
                f'"{self.new}" is not declared',
                why="the declaration tells whether the stored rows are those of its query",
                fix=f"rename the declaration of {self.old} first",
            )
        if self.old in self.tables:
            raise RefusedOperation(
                f'"{self.old}" is still declared',
                why="its next refresh would create it again",
                fix=f"rename its declaration to {self.new} first",
            )
        place = self.catalog.names.own_location(self.old)
        for each in self.tables.values():
            if any(self.catalog.leads_to(source, place) for source in each.sources):
                raise RefusedOperation(
                    f'the declaration of "{each.name}" still reads "{self.old}"',
                    where=each.file or "",
                    why="it could not be refreshed afterwards",
                    fix=f"write {self.new} in its query",
                )

    def _require_free(self) -> None:
        before, after = self._places
        if self.catalog.newest(self.new) is not None:
            raise RefusedOperation(
                f'"{self.new}" is stored already, as is "{self.old}"',
                where=str(after),
                why="a refresh has created it; one name can have one table",
                fix=f"drop one of them: {self.old}, if {self.new} has all that you need; otherwise "
                f"{self.new}, and rename again",
            )
        taken = after.is_dir() and any(after.iterdir())
        if taken or after.is_relative_to(before):
            raise RefusedOperation(
                f'"{self.new}" cannot be the name of a table',
                where=str(after),
                why="its folder has other files" if taken else f"it is in the folder of {self.old}",
                fix="choose another name, or move the files away",
            )

    def _require_no_followers(self) -> None:
        """Slots and workers that follow the table by its name must be ended by a person."""
        slots = self.monitor.retention.slots_of(self.old)
        if slots:
            raise RefusedOperation(
                f'"{self.old}" is followed by slots: {", ".join(slots)}',
                why="their positions name the table, so their readers could not go on",
                fix="let their readers catch up and drop the slots (streamtables slots drop), "
                f"rename, and create them again for {self.new} (streamtables slots create)",
            )
        now = datetime.now(UTC)
        for each in self.monitor.workers().values():
            if self.old in each.tables and each.seems_alive(now):
                raise RefusedOperation(
                    f'the worker {each.place} refreshes "{self.old}"',
                    why="it would create the table again",
                    fix="stop it, rename, and start it with the new declarations",
                )


def _following(last: TableWithState, name: str, reason: str) -> StreamTableState:
    """The state of the last refresh, for a commit without rows, under a name."""
    state, log = last.state, last.log
    counted = [log.transaction(application(each)) for each in (state.table, name)]
    # Rows that another writer changed must still be found: see `read_state`.
    base = last.committed if state.base is None or not last.disturbed else state.base
    before = state.account
    return replace(
        state,
        table=name,
        sequence=max([state.sequence, *filter(None, counted)]) + 1,
        refresh=uuid.uuid4().hex,
        base=base,
        account=RefreshRecord(
            action=str(Action.NO_DATA),
            reason=reason,
            mode=before.mode,
            seconds=0.0,
            until=time.time(),
            rows=(0, 0),
            fallback=before.fallback,
            fallbacks=before.fallbacks,
        ),
        effort=None,
        costs=last.costs,
    )
