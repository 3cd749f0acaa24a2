"""Errors of PostgreSQL and of psycopg, as errors of this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.model.errors import LostPublisher, PublisherProblem
from dagster_streamtables.runtime.errors.slots import LostSlot, SlotInUse

if TYPE_CHECKING:
    import psycopg

AWAY = ("08", "57P", "53300", "40001", "40P01")
"""SQLSTATEs, or their beginnings, of a server that is away or too busy: a retry is enough."""
REFUSES_TO_CONNECT = (
    "authentication failed",
    "role ",
    "user name",
    "no pg_hba.conf entry",
    "permission denied",
    "not permitted to log in",
)
"""What a server says when a retry would not help. It has no SQLSTATE for what happens so early."""
CANNOT_CONNECT = ("no password supplied", "certificate", "SSL was required", "private key")
"""What libpq says then."""


def as_ours(error: psycopg.Error, origin: str, secrets: Iterable[str]) -> StreamTablesError:
    """The same error with what to do about it, without secrets."""
    said = str(error).strip()
    for secret in filter(None, secrets):
        said = said.replace(secret, "***")
    if error.sqlstate is None:
        return _of_connecting(said, origin)
    return _of_statement(error.sqlstate, said, origin)


def _of_connecting(said: str, origin: str) -> StreamTablesError:
    if "database" in said and "does not exist" in said:
        return PublisherProblem(
            f"there is no database {origin}",
            why=said,
            fix="correct the name of the database in the address",
        )
    if "WAL sender" in said or "walsender" in said:
        return _forbidden(said, origin)
    refusals = CANNOT_CONNECT + (REFUSES_TO_CONNECT if "FATAL" in said else ())
    if any(words in said for words in refusals):
        return PublisherProblem(
            f"PostgreSQL at {origin} does not let the replication in",
            why=said,
            fix="correct the user and the password: in the address, in PGPASSWORD, or in the file "
            "of the password; the server's pg_hba.conf must let them in, and the certificates of "
            "the address (sslmode, sslrootcert) must be right",
        )
    return LostPublisher(
        f"PostgreSQL at {origin} cannot be reached",
        why=said,
        fix="start the server, or correct host and port; nothing of this attempt was kept",
    )


def _forbidden(said: str, origin: str) -> StreamTablesError:
    return PublisherProblem(
        f"PostgreSQL at {origin} does not allow that",
        why=said,
        fix="the role needs ALTER ROLE … REPLICATION, and GRANT SELECT on each published table "
        "and USAGE on its schema; BYPASSRLS if a table has row security; to create a publication, "
        "or triggers where the server does not decode, it must own the tables, and for triggers "
        "GRANT CREATE ON DATABASE",
    )


def _of_statement(state: str, said: str, origin: str) -> StreamTablesError:
    if state.startswith(AWAY):
        return LostPublisher(
            f"the connection to PostgreSQL at {origin} was lost",
            why=said,
            fix="nothing, if the server comes back; nothing of this attempt was kept",
        )
    if state == "55P03":
        return LostPublisher(
            f"somebody else keeps a table of PostgreSQL at {origin} locked",
            why=said,
            fix="end what locks it, such as an ALTER TABLE (see pg_locks), and try again",
        )
    if state == "42501":
        return _forbidden(said, origin)
    return _of_slot(state, said, origin) or PublisherProblem(
        f"PostgreSQL at {origin} refuses a statement",
        why=f"{said} (SQLSTATE {state})",
        fix="do what the server says",
    )


def _of_slot(state: str, said: str, origin: str) -> StreamTablesError | None:
    if state == "55006":
        return SlotInUse(
            f"a slot of PostgreSQL at {origin} has a reader",
            why=said,
            fix="end that reader, or wait; a slot has one reader, so create one for each",
        )
    if state == "55000" and "wal_level" in said:
        return PublisherProblem(
            f"PostgreSQL at {origin} does not decode its log",
            why=said,
            fix="set wal_level = logical in postgresql.conf, and restart the server; or have "
            "triggers write what changes: streamtables replications alter NAME --capture auto (or "
            "create it with --capture auto)",
        )
    if state == "53400":
        return PublisherProblem(
            f"PostgreSQL at {origin} has no slot left",
            why=said,
            fix="drop slots that nobody reads (SELECT * FROM pg_replication_slots), or raise "
            "max_replication_slots",
        )
    if state in ("55000", "42704", "58P01") and "slot" in said:
        return LostSlot(
            f"a slot of PostgreSQL at {origin} is lost",
            why=said,
            fix="copy the tables again; to keep more of the log, raise max_slot_wal_keep_size",
        )
    if state == "42704" and "publication" in said:
        return PublisherProblem(
            f"a publication did not exist when PostgreSQL at {origin} logged a change",
            why=said,
            fix="create the publication, then copy the tables again: the log before it cannot be "
            "read by its name",
        )
    return None
