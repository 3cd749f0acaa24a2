"""`ReplicationTarget`: where the rows of a published table go, in commits with their positions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.model.errors import TargetProblem
from dagster_streamtables.runtime.delta.actions import (
    REPLICATION,
    info_of,
    stored_in,
    user_metadata,
)
from dagster_streamtables.runtime.delta.delta_log import Logs, TableLog
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.tables import lost_race
from dagster_streamtables.runtime.errors.translate import translate_commit_errors, translate_errors
from dagster_streamtables.runtime.storage.target import prove

if TYPE_CHECKING:
    from deltalake import CommitProperties
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ReplicationTarget:
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


def position_of(target: ReplicationTarget) -> int | None:
    """The position that the target has reached, by its own log; None if nothing was applied."""
    log = log_of(target)
    return None if log is None else log.transaction(target.application)


def log_of(target: ReplicationTarget) -> TableLog | None:
    """The target's log at its newest version; None if there is no table."""
    return Logs(target.storage_options).newest(target.location)


_REFUSED = ("Invalid data found", "Invariant violation", "CheckConstraint")


@dataclass(frozen=True)
class Provenance:
    """Where the rows of a commit come from, as its metadata have it."""

    replication: str
    origin: str
    table: str
    """The name of the published table."""
    after: int | None
    """The position before."""
    position: int | None
    """The position that is reached; None for a commit that adds columns."""
    inserted: int | None = None
    """None where it is known only after the commit, whose metrics have it."""
    updated: int | None = None
    deleted: int | None = None
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells the commit from others of the same position, by another process."""


def provenance_in(info: Mapping[str, Any]) -> Provenance | None:
    """What a commit's `commitInfo` says; None if no replication made it."""
    text = info.get(REPLICATION) or stored_in(user_metadata(info)).get(REPLICATION)
    return None if text is None else Provenance(**json.loads(text))


def properties(target: ReplicationTarget, provenance: Provenance) -> CommitProperties:
    """What a commit of delta-rs stores besides rows. It fails if another one came first."""
    from deltalake import CommitProperties, Transaction

    position = provenance.position
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={REPLICATION: json.dumps(asdict(provenance))},
        app_transactions=None if position is None else [Transaction(target.application, position)],
    )


def write_commit(
    target: ReplicationTarget,
    after: int,
    made: Provenance,
    write: Callable[[], object],
) -> int:
    """Write, and return the version of the commit.

    Args:
        target: The target.
        after: The version that was read; -1 for a table that is created.
        made: What the commit says of itself.
        write: Makes it.

    Raises:
        ConflictingCommit: Another commit came first; nothing was written.
        TargetProblem: The target refuses a row.
    """

    def explain_and_write() -> None:
        with (
            translate_errors(),
            translate_commit_errors(made=after < 0),
            _explain_refusals(target, made),
        ):
            write()

    version = prove(explain_and_write, lambda: _version_of(target, after, made))
    if version is None:
        raise lost_race("its commit is not in the log")
    return version


@contextmanager
def _explain_refusals(target: ReplicationTarget, made: Provenance) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except DeltaError as error:
        if not any(word in str(error) for word in _REFUSED):
            raise
        raise TargetProblem(
            f'the target of "{made.table}" refuses a row',
            where=target.location,
            why=first_line(str(error)),
            fix="change its constraints, or the row at the publisher; nothing was applied",
        ) from error


def _version_of(target: ReplicationTarget, after: int, made: Provenance) -> int | None:
    """The version of a commit, which is later than `after`; None if it was not made."""
    log = log_of(target)
    for version, commit in log.commits(after, log.version) if log else ():
        if provenance_in(info_of(commit or ())) == made:
            return version
    return None
