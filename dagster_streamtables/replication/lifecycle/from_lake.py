"""`FromLake`: another lake as the publisher of a replication, as a declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.setting import FILLED, Range, normalize_fields


@dataclass(frozen=True)
class FromLake:
    """Publications of another lake.

    Raises:
        InvalidDefinition: No publication is named, or a value is of another type.
    """

    root: Annotated[str, FILLED]
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
    def place(self) -> str:
        """The lake's root."""
        return self.root

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        return {
            "kind": "lake",
            "root": self.root,
            "publications": [*self.publications],
            "origin": self.origin,
            "slot_deadline": self.slot_deadline and self.slot_deadline.total_seconds(),
        }
