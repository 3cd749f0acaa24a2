"""`PostgresPublisher`: the tables of a PostgreSQL server, and their changes from its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dagster_streamtables.replication.model.batch import Batch
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.replication.postgres.batches import batch_of
from dagster_streamtables.replication.postgres.choices import checked
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.lsn import lsn_text
from dagster_streamtables.replication.postgres.peek import peek
from dagster_streamtables.replication.postgres.reading import Read
from dagster_streamtables.replication.postgres.server import Server
from dagster_streamtables.replication.postgres.slots import advance, flushed_to, require_slot


class PostgresPublisher:
    def __init__(
        self, address: str, publications: Sequence[str], *,
        types: Mapping[str, str] | None = None,
        password_file: str | Path | None = None,
    ) -> None:  # fmt: skip
        self._server = Server.at(address, password_file=password_file)
        self._publications = tuple(publications)
        self._choices = checked(types or {})

    @property
    def origin(self) -> str:
        return self._server.origin

    def published(self) -> Mapping[str, PublishedTable]:
        with self._server.session() as connection:
            forms = Forms.load(self._server, connection, self._publications, self._choices)
        return {name: forms.now(name).table for name in forms.tables}

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        with self._server.session() as connection:
            forms = Forms.load(self._server, connection, self._publications, self._choices)
            up_to = flushed_to(connection)
            state = require_slot(connection, slot)
            read = Read(after, forms.then)
            if state.position < up_to:
                read.decode(
                    peek(
                        connection,
                        slot,
                        self._publications,
                        up_to=up_to,
                        max_messages=max_rows,
                        options={},
                    )
                )
        return batch_of(read, up_to, max_rows)

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        with self._server.session() as connection:
            return lsn_text(advance(connection, slot, min(applied.values())))
