"""A PostgreSQL server: its address, its secrets, connections to it, and its errors as ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    LostPublisher,
    PublisherProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import QueryNoTemplate

    Connection = psycopg.Connection[tuple[Any, ...]]

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
"""Messages of a server for which a retry does not help. So early, it sends no SQLSTATE."""
CANNOT_CONNECT = ("no password supplied", "certificate", "SSL was required", "private key")
"""Such messages of libpq."""


def as_ours(error: psycopg.Error, origin: str, secrets: Iterable[str]) -> StreamTablesError:
    """The same error with a fix, and without secrets."""
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
            f"PostgreSQL at {origin} refuses the login of the replication",
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
            f"another session keeps a table of PostgreSQL at {origin} locked",
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


OPTIONS = {
    "application_name": "dagster-streamtables",
    "connect_timeout": "15",
    # A server that vanished is noticed within a minute, not within hours.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Used unless the address has others."""
SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
SESSION = """
    SET client_encoding = 'UTF8';
    SET datestyle = 'ISO, YMD';
    SET intervalstyle = 'postgres';
    SET timezone = 'UTC';
    SET extra_float_digits = 3;
    SET bytea_output = 'hex';
    SET search_path = '';
    SET row_security = off;
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN (
        'statement_timeout', 'transaction_timeout', 'idle_session_timeout',
        'idle_in_transaction_session_timeout');
    SET lock_timeout = '1min'
"""
"""Values are written in one way, whatever the settings of the server or the role. Without row
security, a table of which the role sees only some rows is an error, not a part of the rows."""


@dataclass(frozen=True)
class PublisherServer:
    """One database of a server."""

    options: Mapping[str, str] = field(repr=False)
    """What libpq takes, without any secret."""
    secrets: Mapping[str, str] = field(repr=False)
    password_file: Path | None = field(default=None, repr=False)

    @classmethod
    def at(
        cls, address: str, *, password: str | None = None, password_file: str | Path | None = None
    ) -> PublisherServer:
        """
        Args:
            address: A URL, or a connection string of libpq. If it has no password, libpq looks for
                it in `PGPASSWORD` and in `~/.pgpass`.
            password: The password; it overrides all of these.
            password_file: A file that holds the password and nothing else. It is read for every
                connection, so the password may change.
        """
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = {name: str(value) for name, value in conninfo_to_dict(address).items()}
            _require_plain(address)
        except Exception:
            # What psycopg says may quote a part of the address, which may be the password.
            raise InvalidDefinition(
                "the address of the PostgreSQL server cannot be read",
                why="it is neither a URL nor a connection string of libpq",
                fix='"postgresql://user@host:5432/database", or "host=… dbname=… user=…"; in a URL '
                "the characters @ : / ? # % of a password are written as %40 and so on",
            ) from None
        secrets = {name: given.pop(name) for name in SECRETS if name in given}
        if password is not None:
            secrets["password"] = password
            password_file = None
        file = Path(password_file) if password_file is not None else None
        return cls(OPTIONS | given, secrets, file)

    @property
    def origin(self) -> str:
        """Its address, without user and secrets."""
        host = self.options.get("host") or self.options.get("hostaddr") or "localhost"
        port = self.options.get("port") or "5432"
        name = self.options.get("dbname") or self.options.get("user") or "postgres"
        return f"postgresql://{host}:{port}/{name}"

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection for SQL, which commits each statement separately. Errors of the server
        inside the block become errors of this package."""
        with self.errors(), self._connect() as connection:
            connection.execute(SESSION)
            yield connection

    @contextmanager
    def replication(self) -> Iterator[Connection]:
        """A connection for the commands of the replication protocol, which has no parameters."""
        import psycopg

        with (
            self.errors(),
            self._connect(replication="database", cursor_factory=psycopg.ClientCursor) as it,
        ):
            for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
                it.execute(f"SET {name} = 0")  # type: ignore[arg-type]
            yield it

    @contextmanager
    def errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            is_plain = not any(each and each in str(error) for each in self.secrets.values())
            found = as_ours(error, self.origin, self.secrets.values())
            raise found from (error if is_plain else None)

    def _connect(self, **options: Any) -> Connection:
        import psycopg

        secrets = dict(self.secrets)
        if self.password_file is not None:
            try:
                secrets["password"] = self.password_file.read_text().strip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise EnvironmentProblem(
                    f"the password of PostgreSQL at {self.origin} cannot be read",
                    where=str(self.password_file),
                    why=str(error.strerror) if isinstance(error, OSError) else "it is not text",
                    fix="name a file that holds the password and nothing else, and that this "
                    "process may read",
                ) from error
        # psycopg types none of the options that libpq has.
        every: dict[str, Any] = {**self.options, **secrets, **options}
        return psycopg.connect(autocommit=True, **every)


def _require_plain(address: str) -> None:
    """A password with @ or / that a URL does not write as %40 or %2F gets into other parts."""
    is_url, _, rest = address.partition("://")
    plain = rest.partition("?")[0]
    host = plain.rpartition("@")[2] if "@" in plain else plain
    ports = re.findall(r":([^:,/\]]*)(?=[,/]|$)", host.partition("/")[0])
    if is_url in ("postgres", "postgresql") and (
        plain.count("@") > 1
        or "@" in plain.partition("/")[2]
        or not all(port.isdigit() for port in ports if port)
    ):
        raise ValueError


def scalar(connection: Connection, query: QueryNoTemplate, parameters: Sequence[Any] = ()) -> Any:
    """The value of a query that has one row and one column."""
    row = connection.execute(query, parameters or None).fetchone()
    assert row is not None
    return row[0]


def require_psycopg() -> None:
    """Raise `EnvironmentProblem` if psycopg is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise EnvironmentProblem(
            "the client of PostgreSQL is not installed",
            why=str(error),
            fix="pip install 'dagster-streamtables[postgres]'",
        ) from error
