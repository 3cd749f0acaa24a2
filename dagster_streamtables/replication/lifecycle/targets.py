"""The targets of a replication: where they are, and whether they are still those that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dagster_streamtables.replication.lifecycle.errors import command
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import Progress
from dagster_streamtables.replication.model.errors import TargetProblem
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.replication.target.columns import columns_of
from dagster_streamtables.replication.target.target import Target
from dagster_streamtables.replication.target.target_table import opened
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.table_catalog import TableCatalog


@dataclass(frozen=True)
class Targets:
    lake: Lake
    name: str
    """Of the replication."""
    id: str
    """Likewise."""
    origin: str
    """The publisher's."""

    def target(self, name: str) -> Target:
        """
        Args:
            name: Of the table in the lake.
        """
        access = self.lake.access
        return Target(
            self.lake.location(name),
            self.id,
            self.origin,
            self.lake.storage_options,
            session=lambda: access.session(name).spark,
        )

    def log(self, name: str) -> TableLog | None:
        """Of the table in the lake, at its newest version."""
        return self._catalog.newest(name)

    def position(self, name: str) -> int | None:
        """The position in the log of a target."""
        log = self.log(name)
        return None if log is None else log.transaction(self.target(name).application)

    def seen(self, table: str, progress: Progress) -> Progress:
        """The progress of a table as its target's log has it: the log is ahead after a crash.

        Raises:
            TargetProblem: The target is gone, is another table, or was put back to an earlier
                state, so that the changes since are missing.
        """
        log = self.log(progress.target)
        at = None if log is None else log.transaction(self.target(progress.target).application)
        why = _lost(progress, log, at)
        if why:
            raise TargetProblem(
                f'the target "{progress.target}" is not the table that was written',
                where=self.lake.location(progress.target),
                why=why,
                fix="copy the table again, which replaces its rows: "
                f"{command('copy', self.name, table)}; or put back the target as it was",
            )
        assert log is not None
        positions = [each for each in (progress.position, at) if each is not None]
        position = max(positions, default=None)
        return replace(
            progress, position=position, committed=at, table_id=progress.table_id or log.id
        )

    def require_fit(self, tables: Mapping[str, PublishedTable], replication: Replication) -> None:
        """Check the targets of tables before anything is done to them.

        Raises:
            TargetProblem: One is no Delta table, is missing, or does not take what is published.
        """
        for name, table in tables.items():
            target = self.target(replication.target(name))
            log = self.log(replication.target(name))
            if log is None:
                require_room(name, target)
            if log is not None or not replication.copy:
                opened(target, table)
            if log is not None and not replication.add_columns:
                columns_of(log, table)

    @property
    def _catalog(self) -> TableCatalog:
        return self.lake.access.catalog


def _lost(progress: Progress, log: TableLog | None, at: int | None) -> str:
    if log is None:
        return "there is no Delta table at its place any more"
    if progress.table_id and log.id != progress.table_id:
        return "another table was created in its place"
    if progress.committed is not None and (at is None or at < progress.committed):
        return (
            f"its log says that position {at} is applied, and {progress.committed} was: its files "
            "were put back from a copy"
        )
    return ""


def require_room(name: str, target: Target, *, for_leftovers: bool = False) -> None:
    """
    Args:
        name: Of the published table.
        target: Where a copy is to create a table.
        for_leftovers: Whether data files may be there that a copy has left which was killed.

    Raises:
        TargetProblem: There are other files, among which a table would be created.
    """
    if is_remote(target.location):
        return
    place = Path(target.location)
    there = [*place.iterdir()] if place.is_dir() else [place] * place.exists()
    if for_leftovers:
        there = [each for each in there if each.suffix != ".parquet" and not each.is_dir()]
    if there:
        raise TargetProblem(
            f'the target of "{name}" is no Delta table',
            where=target.location,
            why="there are other files at its place",
            fix="choose another target, or move the files away",
        )
