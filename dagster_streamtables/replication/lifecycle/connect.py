"""The publisher that a replication declares, to read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.replication.lake.publisher import LakePublisher
from dagster_streamtables.replication.lifecycle.from_lake import FromLake
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.replication.postgres.publisher import PostgresPublisher
from dagster_streamtables.runtime.delta.names import require_root
from dagster_streamtables.runtime.lake import Lake


def publisher_of(
    replication: Replication, lake: Lake, reader: str, options: Mapping[str, str] | None = None
) -> Publisher:
    """
    Args:
        replication: The declaration.
        lake: That subscribes.
        reader: Names the replication to others who look at its slot.
        options: The storage options of the publisher's lake; None for those of the lake.

    Raises:
        EnvironmentProblem: There is no such lake, or a password is missing.
    """
    source = replication.publisher
    if isinstance(source, FromPostgres):
        return _server(replication, source)
    options = lake.storage_options if options is None else options
    # A place that is not there now, such as one that is not mounted, may have a slot.
    require_root(source.root, options)
    return LakePublisher(
        source.root,
        source.publications,
        storage_options=options,
        origin=source.origin,
        reader=reader,
        deadline=source.slot_deadline,
        spark=lake.access.spark,
        driver_rows=lake.access.driver_rows,
    )


def _server(replication: Replication, source: FromPostgres) -> PostgresPublisher:
    return PostgresPublisher(
        source.address,
        replication.publications,
        types=source.types,
        password=source.password(),
        password_file=source.password_file,
        origin=source.origin,
        slot_timeout=source.slot_timeout,
        capture=source.capture,
    )


def named_tables(replication: Replication) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The tables and schemas of the publication that is to be made for it; None if none is."""
    source = replication.publisher
    if isinstance(source, FromLake) or source.publications:
        return None
    return tuple(source.tables), tuple(source.schemas)


def require_no_publication(publisher: Publisher, replication: Replication) -> None:
    """
    Raises:
        PublisherProblem: Somebody else's has the name of the one that is to be made.
    """
    name = replication.slot_name
    if named_tables(replication) is None or not isinstance(publisher, PostgresPublisher):
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
    wanted = named_tables(state.replication)
    if wanted is None or not isinstance(publisher, PostgresPublisher):
        unpublish(publisher, state)
        return
    name, (tables, schemas) = state.replication.slot_name, wanted
    if not publisher.has_publication(name):
        publisher.create_publication(name, tables=tables, schemas=schemas)
    elif state.publication != wanted:
        publisher.set_publication(name, tables=tables, schemas=schemas)


def unpublish(publisher: Publisher, state: State) -> None:
    """Drop the publication that was made for it."""
    if state.publication is not None and isinstance(publisher, PostgresPublisher):
        publisher.drop_publication(state.replication.slot_name)


def captures_of(publisher: Publisher, slot: str, tables: Iterable[str]) -> dict[str, str]:
    """How the changes of each table come; see `Replications.captures`."""
    if not isinstance(publisher, PostgresPublisher):
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
