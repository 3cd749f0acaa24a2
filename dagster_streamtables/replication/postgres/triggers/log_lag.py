"""How far a slot is behind the changes that triggers have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.publisher import Lag
from dagster_streamtables.replication.postgres.triggers.server_objects import log_of
from dagster_streamtables.replication.postgres.triggers.windows import windows_of

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection
    from dagster_streamtables.replication.postgres.triggers.captured import Captured

QUERY = """
    SELECT count(DISTINCT xid), pg_total_relation_size({name}),
        coalesce(extract(epoch FROM clock_timestamp() - min(at)), 0)::float8
    FROM {log} WHERE NOT txid_visible_in_snapshot(xid, {snapshot}::txid_snapshot)
"""


def lag_of(connection: Connection, capture: Captured, applied: int) -> Lag:
    """The bytes are those of the log, which others than the slot do not have to keep."""
    from psycopg import sql

    there = windows_of(connection, capture.slot)
    done = [each for each in there if each.position <= applied] or there[:1]
    log = log_of(capture.number)
    query = sql.SQL(QUERY).format(
        log=log,
        name=sql.Literal(log.as_string(connection)),
        snapshot=sql.Literal(done[-1].snapshot),
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    commits, size, seconds = row
    # Of a window that was not applied to its end.
    commits -= sum(max(0, min(applied, each.position) - each.begin) for each in there[len(done) :])
    return Lag(commits=commits, bytes=size if commits else 0, seconds=max(0.0, seconds))
