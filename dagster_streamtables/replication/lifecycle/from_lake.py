"""`FromLake`: another lake as the publisher of a replication, as a declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.delta.names import require_root
from dagster_streamtables.setting import NON_EMPTY, Range, normalize_fields

if TYPE_CHECKING:
    from dagster_streamtables.replication.model.publisher import Publisher
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class FromLake:
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
    def place(self) -> str:
        """The lake's root."""
        return self.root

    @property
    def lake_root(self) -> str:
        """The lake's root."""
        return self.root

    @property
    def publication_members(self) -> None:
        """A lake has publications only."""

    def slot_name(self, replication: str) -> str:
        """The name of the replication: a lake takes any."""
        return replication

    def position_text(self, position: int) -> str:
        """Empty: a position is the version of a table."""
        return ""

    def connect(
        self, lake: Lake, reader: str, publications: Sequence[str],
        options: Mapping[str, str] | None,
    ) -> Publisher:  # fmt: skip
        """See `PublisherDeclaration.connect`."""
        from dagster_streamtables.replication.lake.publisher import LakePublisher

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

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        return {
            "kind": self.kind,
            "root": self.root,
            "publications": [*self.publications],
            "origin": self.origin,
            "slot_deadline": self.slot_deadline and self.slot_deadline.total_seconds(),
        }
