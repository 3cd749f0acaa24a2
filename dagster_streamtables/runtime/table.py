"""`StreamTable`: the declaration of a table by its query, which everything else is handed."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from dagster_streamtables.errors import InvalidDefinition

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class Mode(enum.StrEnum):
    """How a stream table is refreshed."""

    DIFFERENTIAL = "DIFFERENTIAL"
    """By the change of its query; a query without a rule is refused when it is defined."""
    FULL = "FULL"
    """By running its query again whenever a source moved."""
    AUTO = "AUTO"
    """Differentially where the query allows it, else in full; the reason is in every refresh."""


@dataclass(frozen=True)
class StreamTable:
    """A Delta table defined by a query and kept up to date by refreshes.

    Raises:
        InvalidDefinition: A name that is not one to three SQL identifiers joined by dots, an empty
            query, a mode that does not exist, or a ratio outside 0 to 1.
    """

    name: str
    """As queries say it: ``revenue``, or ``sales.revenue``."""
    query: str
    """One SELECT, in Spark SQL. Every column of its result needs a name."""
    mode: Mode = Mode.DIFFERENTIAL
    schedule: str | None = None
    """How fresh: a duration (``5m``), a cron expression, or None for CALCULATED, which means as
    fresh as the tightest table that reads this one."""
    timezone: str = "UTC"
    """Where the cron expression's hours are; durations do not need it."""
    description: str = ""
    differential_max_change_ratio: float = 0.15
    """A refresh recomputes when more than this part of a source's rows changed. 0 means never
    recompute for that reason, 1 means always."""
    file: str | None = None
    """The `.sql` file that the declaration was read from."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidDefinition(
                f'"{self.name}" is not a name for a stream table',
                why="a name is one to three identifiers joined by dots, as a query would write it",
                fix="use letters, digits and underscores, for example sales.revenue",
            )
        if not self.query.strip().rstrip(";").strip():
            raise InvalidDefinition(
                "the query is empty", fix="write one SELECT, it is what the table will hold"
            ).about(self.name)
        if self.mode not in list(Mode):
            raise InvalidDefinition(
                f'there is no mode "{self.mode}"', fix=f"choose one of {', '.join(Mode)}"
            ).about(self.name)
        object.__setattr__(self, "mode", Mode(self.mode))
        if not 0 <= self.differential_max_change_ratio <= 1:
            raise InvalidDefinition(
                f"differential_max_change_ratio is {self.differential_max_change_ratio}",
                why="it is a part of a source's rows",
                fix="give a number from 0 (never recompute) to 1 (always)",
            ).about(self.name)
