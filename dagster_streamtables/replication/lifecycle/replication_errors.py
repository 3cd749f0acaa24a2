"""Errors of replications as a whole, and whether a retry may be enough for an error."""

from __future__ import annotations

import shlex

from dagster_streamtables.errors import (
    ConflictingCommit,
    EnvironmentProblem,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import may_pass
from dagster_streamtables.runtime.errors.slot_errors import SlotInUse

_LONGEST = 300


class MissingReplication(RefusedOperation):
    """There is no replication of that name."""


class ReplicationInUse(RefusedOperation):
    """Another process refreshes it; a retry is enough."""


class DisabledReplication(RefusedOperation):
    """It was disabled, by a person or by an error: somebody must enable it."""


def passes(error: Exception) -> bool:
    """Whether a retry may be enough, once what is away is back."""
    if isinstance(error, StreamTablesError):
        passing = (ConflictingCommit, EnvironmentProblem, SlotInUse, ReplicationInUse)
        return isinstance(error, passing)
    return may_pass(error)


def about(error: StreamTablesError, name: str) -> StreamTablesError:
    """The same error, with the replication named first, and its name in the commands of the fix."""
    named = f'replication "{name}": '
    what = error.what
    return error.with_parts(
        what=what if what.startswith(named) else named + what,
        fix=error.fix.replace("NAME", name),
    )


def command(verb: str, name: str, *more: str) -> str:
    """A command about a replication, to be pasted into a shell.

    >>> command("copy", "shop", "public.Orders 1")
    "streamtables replications copy shop 'public.Orders 1'"
    """
    return shlex.join(["streamtables", "replications", verb, name, *more])


def in_a_line(error: Exception) -> str:
    """What, and the first line of why."""
    if not isinstance(error, StreamTablesError):
        return f"{type(error).__name__}: {first_line(str(error))[:_LONGEST]}"
    place, why = (text.strip().partition("\n")[0][:_LONGEST] for text in (error.where, error.why))
    return ": ".join(filter(None, (error.what, place, why)))
