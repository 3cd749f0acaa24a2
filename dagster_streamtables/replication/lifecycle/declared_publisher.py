"""`PublisherDeclaration`: where a replication reads from, a class for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dagster_streamtables.replication.model.publisher import Publisher

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

Named = tuple[tuple[str, ...], tuple[str, ...]]
"""Tables and schemas, of which a publication is to be made."""


class PublisherDeclaration(Protocol):
    """A frozen dataclass without secrets, whose fields are the settings in files and commands."""

    kind: ClassVar[str]
    """Names the kind in JSON, and the setting in files that has the place."""
    place_field: ClassVar[str]
    """The field with the place."""
    asset_kind: ClassVar[str]
    """The kind that Dagster shows on the assets of its tables."""
    counts_by_table: ClassVar[bool]
    """Whether each table has positions of its own."""

    @property
    def place(self) -> str:
        """A root or an address."""
        ...

    @property
    def publications(self) -> Sequence[str]: ...
    @property
    def publication_members(self) -> Named | None:
        """What is named instead of publications; None if publications are."""
        ...

    @property
    def storage_options(self) -> Mapping[str, str] | None:
        """What is needed to reach it and is not stored; None for what the subscribing lake has."""
        ...

    @property
    def slot_deadline(self) -> timedelta | None:
        """For how long an unread slot is kept; None if it says none."""
        ...

    @property
    def lake_root(self) -> str | None:
        """The root of the lake that it is; None if it is something else."""
        ...

    def slot_name(self, replication: str) -> str:
        """The name of the slot of a replication that names none."""
        ...

    def position_text(self, position: int) -> str:
        """A position as its owner writes it; empty if that is the number."""
        ...

    def connect(
        self, lake: Lake, reader: str, publications: Sequence[str],
        options: Mapping[str, str] | None,
    ) -> Publisher:  # fmt: skip
        """
        Args:
            lake: That subscribes.
            reader: Names the replication to others who look at its slot.
            publications: What to read.
            options: As `storage_options`.

        Raises:
            EnvironmentProblem: It is not there, or a password is missing.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        ...
