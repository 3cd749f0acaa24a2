"""`StreamTable`: the declaration of a table by its query, which everything else is handed."""

from __future__ import annotations

import difflib
import enum
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from dagster_streamtables.compiler import (
    RecursionLimits,
    Text,
    View,
    as_written,
    read,
    require_dialect,
    sources_through,
    text_of,
)
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.runtime.model.labels import checked_group, checked_owners, checked_tags
from dagster_streamtables.setting import Range, require_fields

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class Mode(enum.StrEnum):
    """How a stream table is refreshed."""

    DIFFERENTIAL = "DIFFERENTIAL"
    """By the change of its query; a query without a rule is refused when it is defined."""
    FULL = "FULL"
    """By running its query again whenever a source moved."""
    AUTO = "AUTO"
    """Differentially where the query allows it and that is the cheaper way, as far as refreshes of
    the table were measured; else in full. The reason is in every refresh."""


class OnSchemaChange(enum.StrEnum):
    """What a refresh does when columns that the query uses are others than before."""

    REINITIALIZE = "reinitialize"
    """Run the query again over the new columns."""
    FAIL = "fail"
    """Leave the table as it is, until a full refresh is asked for."""


class OnManualWrite(enum.StrEnum):
    """What a refresh does when somebody else changed rows of the stream table."""

    REPAIR = "repair"
    """Run the query again: what they wrote is gone."""
    REFUSE = "refuse"
    """Leave the table as they left it, until a full refresh is asked for."""


class CdcMode(enum.StrEnum):
    """Where the change of a source is read from, if rows were not only added."""

    AUTO = "auto"
    """The Change Data Feed where it covers the window, else the differing files of both ends."""
    SNAPSHOT = "snapshot"
    """The differing files of both ends: for a feed that cannot be trusted."""
    CDF = "cdf"
    """The Change Data Feed; a window that it does not cover fails the refresh."""
    ENABLE = "enable"
    """As `AUTO`; and a refresh may switch the feed on at a source that has none."""


@dataclass(frozen=True)
class StreamTable:
    """A Delta table defined by a query and kept up to date by refreshes.

    Raises:
        InvalidDefinition: A name that is not one to three SQL identifiers joined by dots, an empty
            query, a mode, a dialect or a time zone that does not exist, a ratio outside 0 to 1, or
            owners, tags or a group that cannot be.
    """

    name: str
    """As queries say it: ``revenue``, or ``sales.revenue``."""
    query: str
    """One SELECT. Every column of its result needs a name."""
    mode: Mode = Mode.DIFFERENTIAL
    schedule: str | None = None
    """How fresh: a duration (``5m``), a cron expression, or None for CALCULATED, which means as
    fresh as the tightest table that reads this one."""
    timezone: str = "UTC"
    """Where the cron expression's hours are; durations do not need it."""
    description: str = ""
    differential_max_change_ratio: Annotated[float, Range(0, 1)] = 0.15
    """A refresh recomputes when more than this part of a source's rows changed, and more than
    5,000 of them. 0 means never recompute for that reason, 1 means always."""
    file: str | None = None
    """The `.sql` file that the declaration was read from."""
    dialect: str = "spark"
    """The SQL dialect of the query: ``postgres``, ``duckdb``, ``snowflake``, … A query that has no
    exact translation is refused."""
    session_timezone: str = "UTC"
    """Where the query's days and hours begin: Spark's ``spark.sql.session.timeZone``."""
    views: tuple[View, ...] = ()
    """Views that the query may name, beside those of the lake."""
    on_schema_change: OnSchemaChange = OnSchemaChange.REINITIALIZE
    on_manual_write: OnManualWrite = OnManualWrite.REPAIR
    cdc_mode: CdcMode = CdcMode.AUTO
    max_consecutive_errors: Annotated[int, Range(0)] = 3
    """After so many errors in a row that only a person can mend, the table is left alone until it
    is resumed or its definition changes; 0 means never."""
    max_recursion_levels: Annotated[int, Range(1)] = 1_000
    """A recursion that has found rows in so many rounds is stopped: it is taken not to end."""
    max_recursion_rows: Annotated[int, Range(1)] = 1_000_000
    """So is one that has made so many rows, those it begins with included."""
    initialize: bool = True
    """Whether the sensor makes the table when it is new. If not, it waits for the first refresh by
    hand, and keeps the table up to date from then on."""
    owners: tuple[str, ...] = ()
    """Of the asset: e-mail addresses, and teams such as ``team:finance``."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Of the asset."""
    group: str = ""
    """Of the asset; empty for the one that the code location gives."""
    line: Annotated[int, Range(1)] = 1
    """The line of `file` in which the query begins."""

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, itself or through views, by their names in it.

        Raises:
            InvalidDefinition: A text is no query of its dialect, or views read one another in a
                circle.
        """
        with self.blamed():
            if self._is_as_written:
                return self._as_written.sources
            return sources_through(self.query, self.dialect, self._views)

    def text(self, columns: Mapping[str, Mapping[str, str]] | None = None) -> Text:
        """The query in Spark SQL, with its views in their places: what is compiled and run.

        Args:
            columns: The columns of the sources and their types in Spark, on which the meaning of
                another dialect may depend.

        Raises:
            InvalidDefinition: As `sources`; or the query has no exact translation.
        """
        with self.blamed():
            if self._is_as_written:
                return self._as_written
            return text_of(self.query, self.dialect, self._views, columns)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Errors within, about the query, tell their place in the file that holds it."""
        try:
            yield
        except StreamTablesError as error:
            raise error.within(self.file or "", self.line) from error.__cause__

    @property
    def recursion(self) -> RecursionLimits:
        """How far a recursion of the query may go."""
        return RecursionLimits(self.max_recursion_levels, self.max_recursion_rows)

    @property
    def learns(self) -> bool:
        """Whether mode AUTO goes by what refreshes took, beside the ratio."""
        return 0 < self.differential_max_change_ratio < 1

    @property
    def _is_as_written(self) -> bool:
        return self.dialect == "spark" and not self.views

    @cached_property
    def _as_written(self) -> Text:
        # What is run as it is written, Spark alone has to understand.
        return read(self.query) if self.mode is Mode.DIFFERENTIAL else as_written(self.query)

    @property
    def _views(self) -> dict[str, View]:
        return {view.name: view for view in self.views}

    def __post_init__(self) -> None:
        require_fields(self, about=str(self.name))
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
        for key, kind in _CHOICES.items():
            object.__setattr__(self, key, kind(getattr(self, key)))
        object.__setattr__(self, "views", tuple(self.views))
        try:
            object.__setattr__(self, "owners", checked_owners(self.owners))
            object.__setattr__(self, "tags", checked_tags(self.tags))
            checked_group(self.group)
            require_dialect(self.dialect)
            _require_zone(self.session_timezone)
        except StreamTablesError as error:
            raise error.about(self.name) from None


_CHOICES: dict[str, type[enum.StrEnum]] = {
    "mode": Mode,
    "on_schema_change": OnSchemaChange,
    "on_manual_write": OnManualWrite,
    "cdc_mode": CdcMode,
}


def _require_zone(name: str) -> None:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        near = difflib.get_close_matches(name, sorted(zoneinfo.available_timezones()), n=3)
        raise InvalidDefinition(
            f'there is no time zone "{name}"',
            fix=f"did you mean {' or '.join(near)}?" if near else "write one such as Europe/Berlin",
        ) from None
