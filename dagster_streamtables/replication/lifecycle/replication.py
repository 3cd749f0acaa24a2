"""`Replication`: tables of a lake that are kept equal to those of a publisher, as a declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from itertools import pairwise
from typing import Annotated, Any, Literal

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.from_lake import FromLake
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.runtime.delta.names import TableNames
from dagster_streamtables.setting import Range, normalize_fields

NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
KINDS: Mapping[str, type[FromLake] | type[FromPostgres]] = {
    each.kind: each for each in (FromLake, FromPostgres)
}
"""The kinds of publishers; each is a `PublisherDeclaration`."""


@dataclass(frozen=True)
class Replication:
    """Tables of a lake that are copied from a publisher and kept equal to it.

    Raises:
        InvalidDefinition: The name is no name of a folder, two tables have one target, or a value
            is not one of those that are possible.
    """

    name: str
    """Letters, digits, underscores and hyphens."""
    publisher: FromLake | FromPostgres
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the name of a published table, the table of the lake that it goes to."""
    schema: str | None = None
    """The schema of the targets that are not named above; None for that of the publisher."""
    copy: bool = True
    """Whether the rows that are there at the start are copied; if not, the targets must exist."""
    enabled: bool = True
    """Whether it may be refreshed. One that is not is only stored: nothing is asked of the
    publisher until it is enabled."""
    slot: str | None = None
    """The name of its slot at the publisher; None for its own name."""
    create_slot: bool = True
    """Whether the slot is made at the start; if not, one of that name must be there."""
    on_conflict: Literal["error", "apply", "skip"] = "error"
    """What happens where a change meets rows that do not fit: stop, let the publisher's row win, or
    keep the target's."""
    add_columns: bool = False
    """Whether published columns that a target lacks are added to it."""
    commit_by_commit: bool = False
    """Whether each transaction of the publisher is a commit of its own; if not, many are one."""
    disable_on_error: bool = False
    """Whether the first error that only a person can mend disables it."""
    on_slot_lost: Literal["error", "copy"] = "error"
    """What happens if the publisher has let the slot go: stop, or copy all tables again, at most
    three times an hour."""
    stopped_deadline: Annotated[timedelta, Range(0)] | None = timedelta(days=1)
    """For how long the publisher keeps the changes for a table that is in trouble; then that table
    must be copied again. None for ever, 0 for not at all."""
    max_rows: Annotated[int, Range(1)] = 200_000
    """A batch ends with the transaction that reaches so many changes."""

    def __post_init__(self) -> None:
        normalize_fields(self)
        if not NAME.fullmatch(self.name):
            raise InvalidDefinition(
                f'"{self.name}" is no name of a replication',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        for target in self.targets.values():
            TableNames("").location(target)
        chosen = sorted(map(self.target, self.targets))
        for one, following in pairwise(chosen):
            if one == following:
                raise InvalidDefinition(
                    f'replication "{self.name}" has two tables for the target "{one}"',
                    why="the rows of one would be deleted as those of the other",
                    fix="give each published table a target of its own",
                )

    def target(self, table: str) -> str:
        """The table of the lake that a published table goes to.

        >>> shop = FromLake("/shop", ["p"])
        >>> Replication("r", shop).target("public.orders")
        'public.orders'
        >>> Replication("r", shop, schema="raw").target("public.orders")
        'raw.orders'
        """
        if table in self.targets:
            return self.targets[table]
        if self.schema is None:
            return table
        return f"{self.schema}.{table.rpartition('.')[2]}"

    @property
    def slot_name(self) -> str:
        """The name of its slot at the publisher."""
        return self.publisher.slot_name(self.name) if self.slot is None else self.slot

    @property
    def publications(self) -> tuple[str, ...]:
        """The names of the publications that it reads."""
        return tuple(self.publisher.publications) or (self.slot_name,)

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        deadline = self.stopped_deadline
        return {
            **values,
            "publisher": self.publisher.to_json(),
            "targets": dict(self.targets),
            "stopped_deadline": None if deadline is None else deadline.total_seconds(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Replication:
        """The declaration that `to_json` has written."""
        known = dict(values)
        publisher = dict(known.pop("publisher"))
        kind = KINDS[publisher.pop("kind")]
        for place in (publisher, known):
            for name in ("slot_timeout", "slot_deadline", "stopped_deadline"):
                if place.get(name) is not None:
                    place[name] = timedelta(seconds=place[name])
        return cls(publisher=kind(**publisher), **known)
