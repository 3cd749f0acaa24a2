"""Errors of replication, by who must act; and the errors of one table among several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from dagster_streamtables.errors import (
    EnvironmentProblem,
    LostSpark,
    LostStore,
    RefusedOperation,
    SourceProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.slots import LostSlot, SlotInUse

_Found = TypeVar("_Found")


class PublisherProblem(SourceProblem):
    """The publisher refuses, or what it publishes cannot be replicated: its owner must act."""


class LostPublisher(EnvironmentProblem):
    """The publisher cannot be reached; a retry is enough once it is back."""


class LostTable(LostSlot, PublisherProblem):
    """Changes of one table are missing: that table must be copied again."""


class ReplicationConflict(RefusedOperation):
    """A change does not fit the rows of its target: change them, or skip it."""


class TargetProblem(RefusedOperation):
    """A target is no Delta table, or its columns do not take what is published."""


OF_ALL = (LostPublisher, LostSpark, LostStore, SlotInUse)
"""Errors that stop the replication, whichever table meets them first."""


def of_each(
    tables: Iterable[str], find: Callable[[str], _Found]
) -> tuple[dict[str, _Found], dict[str, StreamTablesError]]:
    """Find something for each table; the error of one does not hide the others.

    Returns:
        What was found by table, and the errors by table.

    Raises:
        StreamTablesError: An error that is not of one table.
    """
    found: dict[str, _Found] = {}
    refused: dict[str, StreamTablesError] = {}
    for name in tables:
        try:
            found[name] = find(name)
        except OF_ALL:
            raise
        except StreamTablesError as error:
            refused[name] = error
    return found, refused
