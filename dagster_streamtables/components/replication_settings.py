"""`replications` in YAML: tables of another lake or of a PostgreSQL server, as assets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal

from dagster_streamtables.components.yaml_settings import list_resolver
from dagster_streamtables.declare.nodes import ScheduledReplication
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.replication import declaration
from dagster_streamtables.setting import NON_EMPTY, Display, Range, normalize_fields, settings_of

_NAMED_OF_POSTGRES = (
    "tables", "schemas", "password_env", "password_file", "types", "capture", "slot_timeout",
)  # fmt: skip
_OF_DAGSTER = ("schedule", "timezone", "group_name")


@dataclass(frozen=True)
class ReplicationSettings:
    """Tables of another lake, or of a PostgreSQL server, that are copied and kept equal."""

    name: Annotated[str, NON_EMPTY, Display(("shop",))]
    """Letters, digits, underscores and hyphens. The lake stores its state under this name."""
    postgres: Annotated[
        str | None, Display(("postgresql://reader@db.internal/shop", "{{ env.SHOP_DATABASE }}"))
    ] = None
    """The address of the server, without a password."""
    lake: Annotated[str | None, Display(("s3://other/lake",))] = None
    """Instead of `postgres`: the folder or URI of the other lake."""
    publications: Annotated[tuple[str, ...], Display((("sales",),))] = ()
    """The publications to read."""
    tables: Annotated[tuple[str, ...], Display((("public.orders",),))] = ()
    """Tables of the server, with their schemas, instead of publications: one is made for them."""
    schemas: Annotated[tuple[str, ...], Display((("public",),))] = ()
    """Likewise, all tables of these schemas."""
    password_env: Annotated[str | None, Display(("SHOP_PASSWORD",))] = None
    """The environment variable that holds the password. It is read when it is needed."""
    password_file: Annotated[str | None, Display(("/run/secrets/shop",))] = None
    """The file that holds the password and nothing else."""
    types: Annotated[Mapping[str, str], Display(({"public.orders.note": "text"},))] = field(
        default_factory=dict[str, str]
    )
    """By type or column: `text` or `numeric(38, 9)`, where a type has no equal in a Delta table."""
    capture: Literal["auto", "wal", "trigger"] = "wal"
    """`wal` reads the server's log; `trigger` has triggers write down what changes; `auto` does
    that only until the server decodes its log."""
    slot_timeout: Annotated[timedelta, Range(0, above=True)] = timedelta(minutes=5)
    """How long a new slot waits for open transactions."""
    slot_deadline: Annotated[timedelta | None, Range(60), Display((timedelta(days=7),))] = None
    """The other lake drops the slot of a replication that was not refreshed for this time, and then
    keeps nothing for it. At least a minute."""
    origin: Literal["any", "none"] = "any"
    """`none` leaves out what a replication wrote at the publisher."""
    targets: Annotated[Mapping[str, str], Display(({"public.orders": "raw.orders"},))] = field(
        default_factory=dict[str, str]
    )
    """By published table, the table of this lake that it goes to."""
    target_schema: Annotated[str | None, Display(("raw",), default="that of the publisher")] = None
    """The schema of the targets that are not named above."""
    schedule: Annotated[str | None, Display(("5m", "@hourly"), default="`CALCULATED`")] = None
    """How fresh the tables are kept, as the schedule of a stream table."""
    timezone: str = "UTC"
    """The time zone of a cron expression."""
    copy_data: bool = True
    """Whether the rows that are there at the start are copied."""
    enabled: bool = True
    """Whether it is refreshed."""
    slot: Annotated[str | None, Display(default="the name of the replication")] = None
    """The name of its slot at the publisher."""
    create_slot: bool = True
    """Whether the slot is made at the start."""
    on_conflict: Literal["error", "apply", "skip"] = "error"
    """What happens where a change meets rows that do not fit."""
    add_columns: bool = False
    """Whether published columns that a target lacks are added to it."""
    commit_by_commit: bool = False
    """Whether each transaction of the publisher becomes one commit."""
    disable_on_error: bool = False
    """Whether the first error that only a person can fix disables it."""
    on_slot_lost: Literal["error", "copy"] = "error"
    """What happens if the publisher has dropped the slot."""
    stopped_deadline: Annotated[timedelta | None, Range(0)] = timedelta(days=1)
    """For how long the publisher keeps the changes for a table that is in trouble. Then that table
    must be copied again."""
    max_rows: Annotated[int, Range(1)] = 200_000
    """A batch ends with the transaction that reaches this number of changes."""
    group_name: str | None = None
    """The group of the assets."""

    def __post_init__(self) -> None:
        normalize_fields(self)
        given = [name for name in self._settings() if name in _NAMED_OF_POSTGRES]
        if self.lake is not None and given:
            raise InvalidDefinition(
                f'replication "{self.name}" reads from a lake, and has {", ".join(given)}',
                why="these are of a PostgreSQL server",
                fix="name the publications of the lake only",
            )
        if self.postgres is not None and self.slot_deadline is not None:
            raise InvalidDefinition(
                f'replication "{self.name}" reads from a server, and has slot_deadline',
                why="a server limits what its slots keep by max_slot_wal_keep_size",
                fix="leave it out, and set that at the server",
            )

    def _settings(self) -> dict[str, Any]:
        """The settings that have another value than their default."""
        usual = {each.name: each.default for each in settings_of(type(self))}
        return {name: value for name in usual if (value := getattr(self, name)) != usual[name]}

    def declaration(self) -> ScheduledReplication:
        """The replication, with its schedule. Raises `InvalidDefinition` if it names both a server
        and a lake, or neither."""
        given = self._settings()
        dagster = {name: given.pop(name) for name in _OF_DAGSTER if name in given}
        return ScheduledReplication(declaration(given, "the component"), **dagster)


REPLICATIONS = list_resolver(
    ReplicationSettings,
    "Tables of another lake or of a PostgreSQL server, copied and kept equal.",
    ReplicationSettings.declaration,
)
