"""`Target`: where the rows of one published table go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.log_cache import Logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Target:
    """Where the rows of one published table go."""

    location: str
    replication: str
    """The id of the replication, under which the target's log has its position."""
    origin: str
    """The publisher's."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    session: Callable[[], SparkSession] | None = field(default=None, repr=False, compare=False)
    """The Spark that writes what delta-rs cannot; None if there is none."""

    @property
    def application(self) -> str:
        """Whose transaction number the position is."""
        return f"replication:{self.replication}"


def position_of(target: Target) -> int | None:
    """The position that the target has reached, by its own log; None if nothing was applied."""
    log = log_of(target)
    return None if log is None else log.transaction(target.application)


def log_of(target: Target) -> TableLog | None:
    """The target's log at its newest version; None if there is no table."""
    return Logs(target.storage_options).newest(target.location)
