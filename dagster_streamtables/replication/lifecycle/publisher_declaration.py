"""`PublisherDeclaration`: where a replication reads from, a class for each kind of publisher.

`FromLake` reads the publications of another lake, `FromPostgres` the tables of a PostgreSQL server.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.replication.model.replication_model import Publisher
from dagster_streamtables.replication.postgres.logical_slots import lsn_text
from dagster_streamtables.replication.postgres.postgres_server import require_psycopg
from dagster_streamtables.runtime.delta.table_locations import require_root
from dagster_streamtables.setting import NON_EMPTY, Range, normalize_fields

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


PublicationMembers = tuple[tuple[str, ...], tuple[str, ...]]
"""The tables and schemas to create a publication for."""


class PublisherDeclaration(ABC):
    """A frozen dataclass without secrets, whose fields are the settings in files and commands."""

    kind: ClassVar[str]
    """The name of the kind in JSON, and of the setting in files that has the place."""
    place_field: ClassVar[str]
    """The field with the place."""
    asset_kind: ClassVar[str]
    """The kind that Dagster shows on the assets of its tables."""
    counts_by_table: ClassVar[bool]
    """Whether each table has its own positions."""

    publications: Sequence[str]
    storage_options: Mapping[str, str] | None = None
    """What is needed to reach it and is not stored; None for the options of the subscribing
    lake."""
    slot_deadline: timedelta | None = None
    """How long an unread slot is kept; None if the declaration does not limit it."""

    @property
    def place(self) -> str:
        """A root, or an address without secrets."""
        return getattr(self, self.place_field)

    @property
    def publication_members(self) -> PublicationMembers | None:
        """The tables and schemas to create a publication for; None if publications are named."""
        return None

    @property
    def lake_root(self) -> str | None:
        """The root of the lake; None if it is no lake."""
        return None

    def slot_name(self, replication: str) -> str:
        """The name of the slot of a replication that names none; for a publisher that takes any."""
        return replication

    def position_text(self, position: int) -> str:
        """A position as its owner writes it; empty if that is the number."""
        return ""

    @abstractmethod
    def connect(
        self, lake: Lake, reader: str, publications: Sequence[str],
        options: Mapping[str, str] | None,
    ) -> Publisher:  # fmt: skip
        """
        Args:
            lake: The subscribing lake.
            reader: Names the replication to others who look at its slot.
            publications: What to read.
            options: As `storage_options`.

        Raises:
            EnvironmentProblem: It does not exist, or a password is missing.
        """

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        return {"kind": self.kind, **json_fields(self)}


def json_fields(declared: Any) -> dict[str, Any]:
    """The fields of a dataclass that are compared, as JSON values."""
    compared = (each.name for each in fields(declared) if each.compare)
    return {name: _json_value(getattr(declared, name)) for name in compared}


def _json_value(value: Any) -> Any:
    if isinstance(value, PublisherDeclaration):
        return value.to_json()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value


@dataclass(frozen=True)
class FromLake(PublisherDeclaration):
    """Publications of another lake.

    Raises:
        InvalidDefinition: No publication is named, or a value is of another type.
    """

    kind: ClassVar[str] = "lake"
    place_field: ClassVar[str] = "root"
    asset_kind: ClassVar[str] = "replica"
    counts_by_table: ClassVar[bool] = True

    root: Annotated[str, NON_EMPTY]
    """A folder, or the URI of one in an object store."""
    publications: Sequence[str]
    """Their names; a table that is in several is replicated once."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    """What delta-rs needs to reach an object store. It is not stored, since it may hold secrets: a
    process that was not given the declaration uses the options of the subscribing lake."""
    origin: Literal["any", "none"] = "any"
    """"none" leaves out what a replication wrote there, so that two lakes can replicate each
    other."""
    slot_deadline: Annotated[timedelta, Range(60)] | None = None
    """The publisher lets the slot go if nobody has refreshed the replication for so long, and then
    keeps nothing for it; None for never. At least a minute; the status warns where it is less than
    twice what the longest refresh took."""

    def __post_init__(self) -> None:
        if isinstance(self.publications, list):
            object.__setattr__(self, "publications", tuple(self.publications))
        normalize_fields(self)
        place = self.root if "://" in self.root else str(Path(self.root).expanduser().absolute())
        object.__setattr__(self, "root", place.rstrip("/"))
        if not self.publications:
            raise InvalidDefinition(
                "a replication from a lake names no publication",
                where=self.root,
                fix='name what it reads: FromLake(root, ["sales"])',
            )

    @property
    def lake_root(self) -> str:
        """The lake's root."""
        return self.root

    def connect(
        self, lake: Lake, reader: str, publications: Sequence[str],
        options: Mapping[str, str] | None,
    ) -> Publisher:  # fmt: skip
        """See `PublisherDeclaration.connect`."""
        from dagster_streamtables.replication.lake.lake_publisher import LakePublisher

        options = lake.storage_options if options is None else options
        # A place that is not there now, such as one that is not mounted, may have a slot.
        require_root(self.root, options)
        return LakePublisher(
            self.root,
            publications,
            storage_options=options,
            origin=self.origin,
            reader=reader,
            deadline=self.slot_deadline,
            spark=lake.access.spark,
            driver_rows=lake.access.driver_rows,
        )


_SECRET = re.compile(
    r"://[^/?#]*:[^@/?#]+@|\b(?:password|sslpassword|oauth_client_secret|scram_\w+_key)\s*=",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FromPostgres(PublisherDeclaration):
    """Tables of a PostgreSQL server: those of its publications, or tables and schemas, for which a
    publication is made.

    The password is no part of it. It is read for every connection from `password_env` or
    `password_file`; without them libpq looks for it, in `PGPASSWORD` and `~/.pgpass`.

    Raises:
        InvalidDefinition: The address has a password; publications are named along with tables; or
            nothing is named.
    """

    kind: ClassVar[str] = "postgres"
    place_field: ClassVar[str] = "address"
    asset_kind: ClassVar[str] = "postgres"
    counts_by_table: ClassVar[bool] = False

    address: Annotated[str, NON_EMPTY] = field(repr=False)
    """A URL, or a connection string of libpq, without a password."""
    publications: Sequence[str] = ()
    """Publications that exist; a table that is in several is replicated once."""
    tables: Sequence[str] = ()
    """Tables with their schemas, ``public.orders``, instead of publications: one is made for them,
    named like the slot. The role must own them."""
    schemas: Sequence[str] = ()
    """Likewise, all tables of these; the role must be a superuser, and the server 15 or later."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None
    """The file that holds the password and nothing else."""
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    """By type or column (``public.orders.note``): "text", or "numeric(38, 9)", where a type has no
    equal in a Delta table."""
    origin: Literal["any", "none"] = "any"
    """"none" leaves out what a replication wrote there; the server must be 16 or later."""
    capture: Literal["auto", "wal", "trigger"] = "wal"
    """"wal" reads the server's log; "trigger" has statement triggers, which it creates, write what
    changes; "auto" does that only where the server does not decode its log, and goes over to it
    once it does."""
    slot_timeout: timedelta = timedelta(minutes=5)
    """For so long a new slot waits for transactions that are open."""

    def __post_init__(self) -> None:
        for name in ("publications", "tables", "schemas"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        normalize_fields(self)
        if self.password_file:
            object.__setattr__(self, "password_file", str(Path(self.password_file)))
        if _SECRET.search(self.address):
            raise InvalidDefinition(
                "the address of a PostgreSQL server has a password",
                why="a declaration is stored and shown, and a password must be neither",
                fix='leave it out of the address; give password_env="…", the name of an '
                "environment variable that holds it, or password_file",
            )
        named = bool(self.tables or self.schemas)
        if named == bool(self.publications):
            raise InvalidDefinition(
                "a replication from PostgreSQL names "
                + ("both publications and tables" if named else "nothing to replicate"),
                why="a table is published by a publication that is there, or by one that is made",
                fix="give publications=[…] that exist, or tables=[…] and schemas=[…] to make one",
            )
        if self.password_env and self.password_file:
            raise InvalidDefinition(
                "the password of PostgreSQL is in two places",
                fix="give one of password_env and password_file",
            )

    def password(self) -> str | None:
        """The password in the environment variable that is named; None if none is.

        Raises:
            EnvironmentProblem: The variable is not set.
        """
        if not self.password_env:
            return None
        found = os.environ.get(self.password_env)
        if found is None:
            raise EnvironmentProblem(
                f"the environment variable {self.password_env} is not set",
                why="the replication reads the password of PostgreSQL from it",
                fix="set it where the replication runs, or name another one in password_env",
            )
        return found

    @property
    def publication_members(self) -> PublicationMembers | None:
        """The tables and schemas to make a publication of; None if publications are named."""
        return None if self.publications else (tuple(self.tables), tuple(self.schemas))

    def slot_name(self, replication: str) -> str:
        """The name of the replication in the letters that PostgreSQL allows, 63 at most."""
        return re.sub(r"[^a-z0-9_]", "_", replication.lower())[:63]

    def position_text(self, position: int) -> str:
        """The LSN."""
        return lsn_text(position)

    def connect(
        self, lake: Lake, reader: str, publications: Sequence[str],
        options: Mapping[str, str] | None,
    ) -> Publisher:  # fmt: skip
        """See `PublisherDeclaration.connect`."""
        require_psycopg()
        from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher

        return PostgresPublisher(
            self.address,
            publications,
            types=self.types,
            password=self.password(),
            password_file=self.password_file,
            origin=self.origin,
            slot_timeout=self.slot_timeout,
            capture=self.capture,
        )
