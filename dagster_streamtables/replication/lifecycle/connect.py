"""The publisher that a replication declares, to read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.replication.lifecycle.declared_publisher import DeclaredPublisher
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.runtime.lake import Lake


@runtime_checkable
class MakesPublications(Protocol):
    """A publisher of which a publication can be made for tables and schemas."""

    def has_publication(self, name: str) -> bool: ...
    def create_publication(
        self, name: str, *, tables: Sequence[str], schemas: Sequence[str]
    ) -> None: ...
    def set_publication(
        self, name: str, *, tables: Sequence[str], schemas: Sequence[str]
    ) -> None: ...
    def drop_publication(self, name: str) -> None: ...


@runtime_checkable
class HasCaptures(Protocol):
    """A publisher whose tables' changes may come in several ways."""

    def capture_states(self, slot: str) -> Mapping[str, object]: ...


def publisher_of(
    replication: Replication, lake: Lake, reader: str, options: Mapping[str, str] | None = None
) -> Publisher:
    """The publisher that a replication declares; see `DeclaredPublisher.connect`."""
    declared: DeclaredPublisher = replication.publisher
    return declared.connect(lake, reader, replication.publications, options)


def require_no_publication(publisher: Publisher, replication: Replication) -> None:
    """
    Raises:
        PublisherProblem: Somebody else's has the name of the one that is to be made.
    """
    name = replication.slot_name
    if replication.publisher.named is None or not isinstance(publisher, MakesPublications):
        return
    if publisher.has_publication(name):
        raise PublisherProblem(
            f'there is a publication "{name}" at the publisher already',
            where=publisher.origin,
            why="the replication makes one of that name for its tables",
            fix="name it (--publication) instead of the tables, or choose another slot (--slot)",
        )


def publish(publisher: Publisher, state: State) -> None:
    """Make the publication of tables and schemas, or give it those that are declared now. One that
    is not needed any more is dropped."""
    wanted = state.replication.publisher.named
    if wanted is None or not isinstance(publisher, MakesPublications):
        unpublish(publisher, state)
        return
    name, (tables, schemas) = state.replication.slot_name, wanted
    if not publisher.has_publication(name):
        publisher.create_publication(name, tables=tables, schemas=schemas)
    elif state.publication != wanted:
        publisher.set_publication(name, tables=tables, schemas=schemas)


def unpublish(publisher: Publisher, state: State) -> None:
    """Drop the publication that was made for it."""
    if state.publication is not None and isinstance(publisher, MakesPublications):
        publisher.drop_publication(state.replication.slot_name)


def captures_of(publisher: Publisher, slot: str, tables: Iterable[str]) -> dict[str, str]:
    """How the changes of each table come; see `Replications.captures`."""
    if not isinstance(publisher, HasCaptures):
        return dict.fromkeys(tables, "LOG")
    known = publisher.capture_states(slot)
    return {name: str(known.get(name, "WAL")) for name in tables}


def require_slot(state: State) -> str:
    """
    Raises:
        RefusedOperation: It is detached.
    """
    if state.slot is None:
        raise RefusedOperation(
            f'replication "{state.replication.name}" has no slot',
            why="it was detached",
            fix="drop it, and create it again: it copies its tables anew",
        )
    return state.slot
