"""`PostgresPublisher`: the tables of a PostgreSQL server, their publications and changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from psycopg import sql

from dagster_streamtables.errors import InvalidDefinition, PublisherProblem, StreamTablesError
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    Lag,
    PublishedTable,
    TableOffer,
    of_each,
)
from dagster_streamtables.replication.postgres import logical_slots, snapshot
from dagster_streamtables.replication.postgres.conversions import check_choices
from dagster_streamtables.replication.postgres.logical_slots import (
    SlotPosition,
    make_slot,
    require_server_history,
    timeline_of,
)
from dagster_streamtables.replication.postgres.postgres_server import PublisherServer
from dagster_streamtables.replication.postgres.table_form import Forms
from dagster_streamtables.replication.postgres.triggers.trigger_capture import (
    CaptureStatus,
    Choice,
    TriggerCapture,
)
from dagster_streamtables.replication.postgres.wal_reading import (
    Read,
    batch_of,
    oldest_commit,
    options_of,
    peek,
)

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.publication_catalog import CatalogTable


_GROWTH = 4


class PostgresPublisher:
    def __init__(
        self,
        address: str,
        publications: Sequence[str],
        *,
        types: Mapping[str, str] | None = None,
        password: str | None = None,
        password_file: str | Path | None = None,
        origin: Literal["any", "none"] = "any",
        slot_timeout: timedelta = timedelta(minutes=5),
        capture: Choice = "wal",
    ) -> None:
        """
        Args:
            address: As for `FromPostgres`; likewise all others but the password, and the address
                may have one.
            password: Overrides the file, the address, and the places where libpq looks for it.
        """
        self._server = PublisherServer.at(address, password=password, password_file=password_file)
        self._publications = tuple(publications)
        self._choices = check_choices(types or {})
        self._local_only = origin == "none"
        self._wait = slot_timeout.total_seconds()
        self._capture = TriggerCapture(
            self._server, self._forms, capture, self._local_only, self._wait
        )
        self._passed = 0
        """Messages that the last read passed over: all tables had applied them."""
        self._timeline: int | None = None
        """Of the server that was read: another may have taken over before `confirm`."""

    @property
    def origin(self) -> str:
        return self._server.origin

    def offer(self) -> TableOffer:
        with self._server.session() as connection:
            options_of(connection, local_only=self._local_only)
            forms = self._forms(connection)

        def current_table(name: str) -> PublishedTable:
            return replace(forms.now(name).table, id=str(forms.tables[name].oid))

        return TableOffer(*of_each(forms.tables, current_table))

    def create_publication(
        self, name: str, *, tables: Collection[str] = (), schemas: Collection[str] = ()
    ) -> None:
        """
        Args:
            tables: With their schemas, as their owner; a partitioned table is published by its
                root.
            schemas: All their tables, future ones also, as a superuser. The server must be 15 or
                later.

        Raises:
            InvalidDefinition: Neither tables nor schemas are named.
            PublisherProblem: There is no such table, or the server refuses.
        """
        if not tables and not schemas:
            raise InvalidDefinition(
                f'the publication "{name}" would have no tables',
                fix='name them: create_publication("shop", tables=["public.orders"])',
            )
        with self._server.session() as connection:
            by_root = "" if connection.info.server_version < 130000 else _BY_ROOT
            connection.execute(
                sql.SQL("CREATE PUBLICATION {} FOR {}{}").format(
                    sql.Identifier(name), _parts(connection, tables, schemas), sql.SQL(by_root)
                )
            )

    def has_publication(self, name: str) -> bool:
        with self._server.session() as connection:
            query = "SELECT 1 FROM pg_publication WHERE pubname = %s"
            return connection.execute(query, [name]).fetchone() is not None

    def set_publication(
        self, name: str, *, tables: Collection[str] = (), schemas: Collection[str] = ()
    ) -> None:
        """Replace what a publication publishes; see `create_publication`."""
        with self._server.session() as connection:
            parts = _parts(connection, tables, schemas)
            with connection.transaction():
                # Older servers lose changes of transactions that were open when the table was
                # added.
                for _, schema, table in connection.execute(TABLES, [list(tables)]).fetchall():
                    lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
                    connection.execute(lock.format(sql.Identifier(schema, table)))
                query = sql.SQL("ALTER PUBLICATION {} SET {}")
                connection.execute(query.format(sql.Identifier(name), parts))

    def drop_publication(self, name: str) -> None:
        """Does nothing if it does not exist."""
        with self._server.session() as connection:
            drop = sql.SQL("DROP PUBLICATION IF EXISTS {}")
            connection.execute(drop.format(sql.Identifier(name)))

    @contextmanager
    def copy(self, slot: str, tables: Collection[str]) -> Iterator[snapshot.SnapshotCopy]:
        if self._capture.are_triggers_first(slot):
            with self._capture.copy(slot, tables) as copied:
                yield copied
            return
        before, is_new = self._meet(slot, tables)
        with self._server.session() as connection:
            try:
                position = snapshot.begin_with_slot(
                    self._server, connection, slot, temporary=not is_new, wait=self._wait
                )
                copied = snapshot.SnapshotCopy.open(
                    self._server, connection, before, self._forms, position
                )
            except BaseException:
                if is_new:
                    with suppress(StreamTablesError):
                        self.drop_slot(slot)
                raise
            with closing(copied):
                yield copied

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        if self._capture.are_triggers_first(slot):
            return self._capture.create_slot(slot, tables)
        _, is_new = self._meet(slot, tables)
        if is_new:
            with self._server.replication() as protocol:
                position, _ = make_slot(
                    self._server, protocol, slot, temporary=False, export=False, wait=self._wait
                )
        else:
            with self._server.session() as connection:
                position = logical_slots.wal_flush_position(connection)
        return dict.fromkeys(tables, position)

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        if not after:
            return Batch({}, {})
        with self._server.session() as connection:
            route = self._capture.route(connection, slot, after)
            if route.by_triggers:
                with _stop_all_tables("triggers capture all tables in one order"):
                    return self._capture.read(connection, slot, after, max_rows=max_rows)
            options = options_of(connection, local_only=self._local_only)
            forms = self._forms(connection)
            flushed = logical_slots.wal_flush_position(connection)
            up_to = flushed if route.up_to is None else min(flushed, route.up_to)
            state = logical_slots.require_slot(connection, slot)
            last = SlotPosition.of(confirmed).since(route.begin) if confirmed else None
            logical_slots.require_slot_position(state, slot, last and last.position, after)
            self._timeline = timeline_of(connection)
            require_server_history(self._server, self._timeline, last, after, flushed)
            limit = max_rows + self._passed
            while True:
                read = Read(after, forms.then)
                if state.position < up_to:
                    read.decode(self._peek(connection, slot, up_to, limit, options))
                batch = batch_of(read, up_to, limit)
                self._passed = read.passed
                moved = batch.end != {name: after[name] for name in batch.end}
                if batch.complete or batch.refused or moved:
                    break
                # All of it was applied: the slot waits for a table that is stopped.
                limit = max(_GROWTH * limit, max_rows + read.passed)
        return batch if route.up_to is None else replace(batch, complete=False)

    def _peek(
        self, connection: Connection, slot: str, up_to: int, limit: int, options: Mapping[str, str]
    ) -> Iterator[bytes]:
        shared = "the server decodes the changes of all tables together"
        with _stop_all_tables(shared), self._server.errors():
            yield from peek(
                connection, slot, self._publications, up_to=up_to, max_messages=limit,
                options=options,
            )  # fmt: skip

    def confirming(self, applied: Mapping[str, int]) -> str:
        return str(SlotPosition(min(applied.values()), self._timeline))

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        if (confirmed := self._capture.confirm(slot, applied)) is not None:
            return confirmed
        with self._server.session() as connection:
            if applied:
                position = logical_slots.advance(connection, slot, min(applied.values()))
            else:
                position = logical_slots.require_slot(connection, slot).position
            return str(SlotPosition(position, self._timeline or timeline_of(connection)))

    def capture_states(self, slot: str) -> Mapping[str, CaptureStatus]:
        """How the changes of each table come now. TRANSITIONING from one way to the other ends when
        all changes that came the old way are confirmed."""
        return self._capture.states(slot)

    def release(self, slot: str, tables: Collection[str]) -> None:
        """A server has one position for all tables of a slot."""

    def drop_slot(self, slot: str) -> None:
        self._capture.drop(slot)
        with self._server.session() as connection:
            logical_slots.drop(connection, slot)

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag:
        if (lag := self._capture.lag(slot, applied)) is not None:
            return lag
        with self._server.session() as connection:
            state = logical_slots.require_slot(connection, slot)
            now = logical_slots.wal_flush_position(connection)
            position = max(state.position, min(applied.values(), default=0))
            if position >= now:
                return Lag(commits=None, bytes=0, seconds=0.0)
            options = options_of(connection, local_only=self._local_only)
            seconds = oldest_commit(
                connection,
                slot,
                self._publications,
                up_to=now,
                behind=position,
                is_first=position == state.position,
                options=options,
            )
        return Lag(commits=None, bytes=now - position, seconds=seconds)

    def _forms(self, connection: Connection) -> Forms:
        return Forms.load(self._server, connection, self._publications, self._choices)

    def _meet(self, slot: str, tables: Collection[str]) -> tuple[dict[str, CatalogTable], bool]:
        """The tables as they are, all readable; and whether there is no such slot yet."""
        with self._server.session() as connection:
            snapshot.wait_for_locks(connection, self._wait)
            options_of(connection, local_only=self._local_only)
            found = snapshot.require_in_publication(self._forms(connection), tables)
            snapshot.require_readable(connection, found.values())
            is_new = logical_slots.slot_state(connection, slot) is None
            if not is_new:
                logical_slots.require_slot(connection, slot)
        return found, is_new


@contextmanager
def _stop_all_tables(shared: str) -> Iterator[None]:
    """Let a `PublisherProblem` be about all tables, and say why."""
    try:
        yield
    except PublisherProblem as error:
        why = f"{error.why}; {shared}, so none of them goes on"
        raise error.with_parts(PublisherProblem, why=why) from error


# A dot may be in the name of a schema or of a table, so the whole name is compared.
TABLES = """
    SELECT n.nspname || '.' || c.relname, n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s)
"""
_BY_ROOT = " WITH (publish_via_partition_root = true)"


def _parts(
    connection: Connection, tables: Collection[str], schemas: Collection[str]
) -> sql.Composed:
    """What a publication publishes, as SQL."""
    parts = [*_tables(connection, tables), *_schemas(connection, schemas)]
    return sql.SQL(", ").join(parts)


def _schemas(connection: Connection, schemas: Collection[str]) -> Iterator[sql.Composed]:
    if schemas and connection.info.server_version < 150000:
        raise PublisherProblem(
            "the server does not publish whole schemas",
            why="PostgreSQL does since version 15",
            fix='name the tables: tables=["public.orders"]',
        )
    if schemas:
        names = sql.SQL(", ").join(map(sql.Identifier, schemas))
        yield sql.SQL("TABLES IN SCHEMA {}").format(names)


def _tables(connection: Connection, tables: Collection[str]) -> Iterator[sql.Composed]:
    if not tables:
        return
    found = connection.execute(TABLES, [list(tables)]).fetchall()
    missing = set(tables) - {name for name, *_ in found}
    if missing:
        raise PublisherProblem(
            f"there is no table {', '.join(sorted(missing))} to publish",
            why="a table is named with its schema, as the server writes both; views cannot be "
            "published",
            fix='correct the name: "public.orders"',
        )
    names = (sql.Identifier(schema, table) for _, schema, table in found)
    yield sql.SQL("TABLE {}").format(sql.SQL(", ").join(names))
