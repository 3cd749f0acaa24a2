"""`ScheduledReplication`: a replication, and when Dagster refreshes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import dagster as dg

from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.setting import Shown, normalize_fields


@dataclass(frozen=True)
class ScheduledReplication:
    """A replication, and when Dagster refreshes it.

    A `Replication` without this is as fresh as the stream tables that read its tables need.
    """

    replication: Replication
    schedule: Annotated[
        str | None, Shown(("5m", "0 6 * * *", "@hourly", "CALCULATED"), default="`CALCULATED`")
    ] = None
    """How fresh its tables are kept, as the schedule of a stream table."""
    timezone: str = "UTC"
    """The time zone of a cron expression."""
    group_name: str | None = None
    """The group of the assets of its tables."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def name(self) -> str:
        """The name of the replication."""
        return self.replication.name


def without_env_vars(declared: ScheduledReplication) -> ScheduledReplication:
    """The same with the name of a variable in place of Dagster's `EnvVar`, which no text may have:
    the password is read where the replication is refreshed."""
    publisher = declared.replication.publisher
    variable = publisher.password_env if isinstance(publisher, FromPostgres) else None
    if not isinstance(variable, dg.EnvVar):
        return declared
    publisher = replace(publisher, password_env=variable.env_var_name)
    return replace(declared, replication=replace(declared.replication, publisher=publisher))


def declared_tables(replication: Replication) -> dict[str, str]:
    """The tables that a declaration names, with their targets."""
    publisher = replication.publisher
    named = publisher.tables if isinstance(publisher, FromPostgres) else ()
    return {name: replication.target(name) for name in (*named, *replication.targets)}
