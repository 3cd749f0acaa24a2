"""`StreamTable`: the declaration of a table by its query."""

from __future__ import annotations

import difflib
import enum
import hashlib
import re
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from dagster_streamtables.compiler import (
    RecursionLimits,
    Text,
    View,
    check_dialect,
    is_storable,
    place_of_table,
    read,
    sources_through,
    text_of,
    tokenize_query,
    views_of,
)
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, StreamTablesError
from dagster_streamtables.runtime.model.query_functions import (
    UserFunction,
    check_modules,
    functions_in,
    match_functions,
    with_functions,
)
from dagster_streamtables.setting import INTERNAL, Display, Normalizer, Range, normalize_fields

_PART = r"[A-Za-z0-9_.-]{1,63}"
_TAG_KEY = re.compile(rf"({_PART}/|dagster/kind/)?{_PART}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.-]{0,63}")
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z|]{2,7}\b")
_GROUP = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")


def check_owners(owners: Iterable[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidDefinition: One is neither an e-mail address nor a team.
    """
    found = tuple(owners)
    for owner in found:
        if not (_EMAIL.fullmatch(owner) or (owner.startswith("team:") and len(owner) > 5)):
            raise InvalidDefinition(
                f'"{owner}" is not a valid owner',
                why="an owner is an e-mail address, or a team",
                fix=f"write an address, or team:{_word(owner) or 'finance'}",
            )
    return found


def check_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """
    Raises:
        InvalidDefinition: A key or a value has invalid characters, or too many.
    """
    found = {str(key): str(value) for key, value in tags.items()}
    letters, fix = "up to 63 letters, digits and _ . -", "write such as tier=gold"
    for key, value in found.items():
        if not _TAG_KEY.fullmatch(key):
            raise InvalidDefinition(
                f'"{key}" is not a valid tag key',
                why=f"it may have {letters}, after a namespace and a slash if need be",
                fix=fix,
            )
        if not _TAG_VALUE.fullmatch(value):
            what = f'"{value}" is not a valid value of the tag "{key}"'
            raise InvalidDefinition(what, why=f"it may have {letters}", fix=fix)
    return found


def check_group(group: str) -> str:
    """
    Raises:
        InvalidDefinition: It has invalid characters.
    """
    if group and not _GROUP.fullmatch(group):
        raise InvalidDefinition(
            f'"{group}" is not a valid group name',
            why="a group is letters, digits and underscores; slashes make groups in groups",
            fix=f"write {_word(group) or 'finance'}",
        )
    return group


def _word(text: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", text))


_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_BACKTICKS = re.compile("`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class Mode(enum.StrEnum):
    """How a stream table is refreshed."""

    DIFFERENTIAL = "DIFFERENTIAL"
    """By the change of its query; a query that cannot be maintained is refused when defined."""
    FULL = "FULL"
    """By running its query again whenever a source changed."""
    AUTO = "AUTO"
    """By its change if the query can be maintained and measured refreshes of the table show that to
    be cheaper; otherwise in full."""


class OnSchemaChange(enum.StrEnum):
    """What a refresh does if columns that the query uses have changed."""

    REINITIALIZE = "reinitialize"
    """Run the query again over the new columns."""
    FAIL = "fail"
    """Fail, and leave the table unchanged until a full refresh is requested."""


class OnManualWrite(enum.StrEnum):
    """What a refresh does if somebody else changed rows of the stream table."""

    REPAIR = "repair"
    """Run the query again, which removes their rows."""
    REFUSE = "refuse"
    """Fail, and leave the table unchanged until a full refresh is requested."""


class OnFull(enum.StrEnum):
    """What a refresh does that would run the query over all rows, though nobody asked for it. A
    first refresh, one that is requested with `full`, and mode `FULL` are not concerned."""

    ALLOW = "allow"
    """Run it."""
    WARN = "warn"
    """Run it, warn, and fail the asset check `was_not_full`."""
    REFUSE = "refuse"
    """Fail, and leave the table unchanged until a full refresh is requested. Mode `AUTO` then takes
    the change although recomputing is cheaper, and a query that cannot be maintained is refused
    when defined. Intermediate tables are rebuilt with a warning."""


class CdcMode(enum.StrEnum):
    """Where the change of a source is read from, if rows were not only added."""

    AUTO = "auto"
    """The Change Data Feed if it covers the window, otherwise the differing files of both ends."""
    SNAPSHOT = "snapshot"
    """The differing files of both ends: for a feed that cannot be trusted."""
    CDF = "cdf"
    """The Change Data Feed; a window that it does not cover fails the refresh."""
    ENABLE = "enable"
    """As `auto`; and a refresh may turn the feed on for a source that has none."""


class OnRepresentation(enum.StrEnum):
    """What happens to a query of another dialect whose results mean the same and look different."""

    TELL = "tell"
    """It is translated; `explain` and the asset's page say what looks different."""
    REFUSE = "refuse"
    """It is refused."""


def check_zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        near = difflib.get_close_matches(name, sorted(zoneinfo.available_timezones()), n=3)
        raise InvalidDefinition(
            f'there is no time zone "{name}"',
            fix=f"did you mean {' or '.join(near)}?" if near else "write one such as Europe/Berlin",
        ) from None
    return name


def _check_column(name: str) -> str:
    own = name.lower().startswith("__st_") or not is_storable(name)
    if name and (own or not _COLUMN.fullmatch(name)):
        raise InvalidDefinition(
            f'changed_at cannot name a column "{name}"',
            why="names with this prefix, and those of Delta's change feed, are reserved"
            if own and _COLUMN.fullmatch(name)
            else "a name is letters, digits and underscores, and does not begin with a digit",
            fix="write such as loaded_at",
        )
    return name


@dataclass(frozen=True)
class StreamTable:
    """A Delta table defined by a query and kept up to date by refreshes.

    Raises:
        InvalidDefinition: The name is not one to three SQL identifiers joined by dots, the query is
            empty, a mode, dialect or time zone does not exist, a ratio is outside 0 to 1, or
            owners, tags or group are invalid.
    """

    name: Annotated[
        str,
        Display(("mart.revenue",), default="folder and file: `mart/revenue.sql` is `mart.revenue`"),
    ]
    """The name in queries: `revenue`, or `sales.revenue`."""
    query: Annotated[
        str, Display(("SELECT region, SUM(amount) AS total FROM orders GROUP BY region",))
    ]
    """One SELECT. Every column of its result needs a name."""
    mode: Mode = Mode.DIFFERENTIAL
    """How the table is refreshed."""
    schedule: Annotated[
        str | None, Display(("5m", "0 6 * * *", "@hourly", "CALCULATED"), default="`CALCULATED`")
    ] = None
    """How fresh the table is kept: a duration (`30s`, `5m`, `1h30m`, `1d`), a cron expression of
    five or six fields, an alias such as `@hourly`, or `on change`: as soon as a source moved.
    `CALCULATED`, in Python `None`, means as fresh as its readers need: the tightest of their
    schedules."""
    timezone: str = "UTC"
    """The time zone of a cron expression. Durations do not need it."""
    description: str = ""
    """Shown in the UI, above the SQL."""
    owners: Annotated[
        tuple[str, ...], Normalizer(check_owners), Display((("team:finance", "ann@example.com"),))
    ] = ()
    """The owners of the asset: e-mail addresses, and teams such as `team:finance`."""
    tags: Annotated[
        Mapping[str, str], Normalizer(check_tags), Display(({"tier": "gold", "pii": ""},))
    ] = field(default_factory=dict[str, str], hash=False)
    """The tags of the asset."""
    group: Annotated[str, Normalizer(check_group), Display(default="that of the code location")] = (
        ""
    )
    """The group of the asset."""
    dialect: Annotated[str, Normalizer(check_dialect), Display(("spark", "postgres", "duckdb"))] = (
        "spark"
    )
    """The SQL dialect of the query. `postgres` and `duckdb` are tested on their databases; others,
    such as `snowflake`, are experimental, and give a warning. A query without an exact translation
    is refused."""
    session_timezone: Annotated[str, Normalizer(check_zone)] = "UTC"
    """The time zone of the query's days and hours: Spark's `spark.sql.session.timeZone`."""
    functions: Annotated[
        tuple[str, ...],
        Normalizer(check_modules),
        Display((("project.functions", "project.money:net"),)),
    ] = ()
    """Python modules with functions of your own, which the query and its views may call: those that
    `deterministic` or `sql_function` declares, or one of them."""
    on_representation: OnRepresentation = OnRepresentation.TELL
    """What becomes of a query of another dialect whose results mean the same and look different:
    the spaces in JSON, digits beyond the 38 of Spark's decimals, floats for numeric functions."""
    differential_max_change_ratio: Annotated[float, Range(0, 1)] = 0.15
    """A refresh recomputes if more than this fraction of a source's rows changed, and more than
    5,000 of them. 0 means never recompute for that reason, 1 means always. Mode `AUTO` uses it
    until it has measured refreshes of both kinds."""
    on_schema_change: OnSchemaChange = OnSchemaChange.REINITIALIZE
    """What a refresh does if columns that the query uses have changed."""
    on_manual_write: OnManualWrite = OnManualWrite.REPAIR
    """What a refresh does if somebody else changed rows of the stream table."""
    on_full: OnFull = OnFull.ALLOW
    """What a refresh does that would run the query again over all rows, though nobody asked for
    it."""
    changed_at: Annotated[str, Normalizer(_check_column), Display(("loaded_at",))] = ""
    """The name of a column that the product adds to the table, after those of the query: the time
    of the refresh that inserted the row or changed it last. Empty: no such column."""
    cdc_mode: CdcMode = CdcMode.AUTO
    """Where the change of a source is read from, if rows were not only added."""
    max_consecutive_errors: Annotated[int, Range(0)] = 3
    """After this many errors in a row that only a person can fix, the table is suspended until it
    is resumed or its definition changes. Attempts by hand do not count. 0 means never."""
    max_recursion_levels: Annotated[int, Range(1)] = 1_000
    """A recursion that finds rows in more rounds than this is stopped, and the refresh fails."""
    max_recursion_rows: Annotated[int, Range(1)] = 1_000_000
    """A recursion that makes more rows than this, including those of its base, is stopped, and the
    refresh fails."""
    initialize: bool = True
    """Whether the sensor creates the table when it is new. If not, a person must start the first
    refresh; the sensor keeps the table up to date from then on."""
    file: Annotated[str | None, INTERNAL] = None
    """The `.sql` or YAML file that the declaration was read from."""
    line: Annotated[int, Range(1), INTERNAL] = 1
    """The line of `file` in which the query begins."""
    views: Annotated[tuple[View, ...], INTERNAL] = ()
    """Views that the query may name, in addition to those of the lake."""

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, directly or through views, by their names in it.

        Raises:
            InvalidDefinition: A text is not a query in its dialect, or views read one another in a
                cycle.
        """
        with self.locate_errors():
            if self._is_plain_spark:
                return self._plain_text.sources
            return sources_through(self.query, self.dialect, self._views)

    def text(self, columns: Mapping[str, Mapping[str, str]] | None = None) -> Text:
        """The query in Spark SQL with its views inlined, as it is compiled and run.

        Args:
            columns: The columns of the sources and their types in Spark, on which the meaning of
                another dialect may depend.

        Raises:
            InvalidDefinition: As `sources`; or the query has no exact translation.
        """
        with self.locate_errors():
            if self._is_plain_spark:
                return self._with_functions(self._plain_text)
            text = text_of(self.query, self.dialect, self._views, columns)
            if text.notes and self.on_representation is OnRepresentation.REFUSE:
                raise InvalidDefinition(
                    "the translation of the query is represented differently",
                    why="; ".join(text.notes),
                    fix="cast or round what differs, or set on_representation to tell",
                )
            return self._with_functions(text)

    @property
    def needs_translation(self) -> bool:
        """Whether its query, or one of its views, is in another dialect than Spark's."""
        return any(each != "spark" for each in (self.dialect, *(v.dialect for v in self.views)))

    @cached_property
    def meaning(self) -> str:
        """Differs if the rows of the table may differ by the query, its views, functions, dialect
        or time zone, or by `changed_at`; equal for texts that a formatter makes of each other.

        Raises:
            InvalidDefinition: As `sources`.
        """
        with self.locate_errors():
            views = views_of(self.query, self.dialect, self._views)
            texts = [Text(self.query, self.dialect)]
            texts += [Text(view.query, view.dialect) for view in views]
            own = functions_in(self.functions) if self.functions else {}
            called = match_functions([each.sql for each in texts], own)
            about = [repr((view.name, view.dialect, view.columns)) for view in views]
            parts = [self.dialect, self.session_timezone, *(each.normal for each in texts)]
            parts += [*about, *sorted(each.registered for each in called)]
            parts += [f"changed_at {self.changed_at}"] if self.changed_at else []
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Add the place in the query's file to errors, and quote names in the fix as the query's
        dialect does: only Spark uses backticks."""
        try:
            yield
        except StreamTablesError as error:
            fix = error.fix
            if self.dialect != "spark":
                fix = _IN_BACKTICKS.sub(r'"\1"', fix).replace("backticks", "double quotes")
            found = error.with_parts(fix=fix) if fix != error.fix else error
            raise found.within(self.file or "", self.line) from error.__cause__

    def place_of(self, table: str) -> QueryPosition | str:
        """The place where the query, or a view of it, names a table; empty if neither does."""
        queries = [(self.query, self.dialect, self.file, self.line)]
        queries += [(each.query, each.dialect, each.file, each.line) for each in self.views]
        for query, dialect, file, line in queries:
            found = place_of_table(query, dialect, table)
            if isinstance(found, QueryPosition):
                return found.within(file or "", line)
        return ""

    @property
    def called_functions(self) -> tuple[UserFunction, ...]:
        """The functions of the author's own that the query, or a view of it, may call."""
        texts = (self.query, *(view.query for view in self.views))
        with self.locate_errors():
            return match_functions(texts, functions_in(self.functions)) if self.functions else ()

    def _with_functions(self, text: Text) -> Text:
        return with_functions(text, functions_in(self.functions)) if self.functions else text

    @property
    def recursion(self) -> RecursionLimits:
        """How far a recursion of the query may go."""
        return RecursionLimits(self.max_recursion_levels, self.max_recursion_rows)

    @property
    def learns(self) -> bool:
        """Whether mode AUTO uses measurements of refreshes in addition to the ratio."""
        return 0 < self.differential_max_change_ratio < 1

    @property
    def is_differential_only(self) -> bool:
        """Whether a query that cannot be maintained is refused when defined."""
        strict = self.mode is Mode.AUTO and self.on_full is OnFull.REFUSE
        return strict or self.mode is Mode.DIFFERENTIAL

    @property
    def _is_plain_spark(self) -> bool:
        return self.dialect == "spark" and not self.views

    @cached_property
    def _plain_text(self) -> Text:
        # Only Spark has to understand a query that runs as written.
        return read(self.query) if self.is_differential_only else tokenize_query(self.query)

    @property
    def _views(self) -> dict[str, View]:
        return {view.name: view for view in self.views}

    def __post_init__(self) -> None:
        normalize_fields(self, about=str(self.name))
        if not _NAME.fullmatch(self.name):
            raise InvalidDefinition(
                f'"{self.name}" is not a name for a stream table',
                why="a name is one to three identifiers joined by dots, as a query would write it",
                fix="use letters, digits and underscores, for example sales.revenue",
            )
        if not self.query.strip().rstrip(";").strip():
            raise InvalidDefinition(
                "the query is empty", fix="write one SELECT, which defines the table"
            ).about(self.name)
