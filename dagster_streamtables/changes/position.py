"""Where a subscription begins: at a time, or at the position of a resume token or a slot."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dagster_streamtables.changes.clock.clock import (
    AsOf,
    AtLeast,
    Bound,
    Instant,
    MillisecondClock,
    SubscriptionClock,
    VersionClock,
    require_order,
)
from dagster_streamtables.changes.clock.version_timeline import VersionTimeline
from dagster_streamtables.changes.relation import frontier
from dagster_streamtables.changes.relation.relation import (
    SubscriptionRelation,
    declare_relation,
    relation_of,
    relation_of_table,
    table_of,
)
from dagster_streamtables.errors import HistoryUnavailable, RefusedOperation
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity
from dagster_streamtables.runtime.errors.slot_errors import of_another_relation
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import with_exact_names
from dagster_streamtables.runtime.observe.slot_store import Slot

_FORMAT = 1
_DIGEST = 8
_LONGEST = 1 << 20
"""The longest unpacked token; a forged one could fill the memory."""


@dataclass(frozen=True)
class Position:
    """All changes up to and including a timestamp were read.

    A reader that stores it in the transaction of the rows, and resumes there, loses no row and gets
    none twice.
    """

    fingerprint: str
    """See `SubscriptionRelation.fingerprint`."""
    clock: str
    timestamp: int
    frontier: Mapping[str, Snapshot]
    """Source → the version that `timestamp` means."""
    snapshot: bool = False
    """Whether the snapshot at `timestamp` must still be read."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Source → its followed columns: others may have been added since."""

    @classmethod
    def of(
        cls, relation: SubscriptionRelation, clock: str, at: Instant, *, snapshot: bool = False
    ) -> Position:
        versions = {name: log.snapshot for name, log in at.frontier.items()}
        columns = relation.source_columns
        return cls(relation.fingerprint, clock, at.timestamp, versions, snapshot, columns)

    @property
    def token(self) -> str:
        """The position as text of letters, digits, ``-`` and ``_``."""
        seen = {
            name: [each.table.location, each.table.id, each.version, each.commit]
            for name, each in self.frontier.items()
        }
        values = {"f": _FORMAT, "r": self.fingerprint, "c": self.clock, "t": self.timestamp}
        columns = {name: list(each) for name, each in self.columns.items()}
        values |= {"s": int(self.snapshot), "v": seen, "n": columns}
        content = zlib.compress(json.dumps(values, separators=(",", ":")).encode(), 9)
        return _encode(_digest(content) + content)


def position_of(token: str) -> Position:
    """
    Raises:
        RefusedOperation: The text is no token, or was damaged.
    """
    try:
        packed = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        content = packed[_DIGEST:]
        # Only a damaged token has another spelling of the same bytes.
        if packed[:_DIGEST] != _digest(content) or _encode(packed) != token:
            raise ValueError("its parts do not fit together")
        values = json.loads(zlib.decompressobj().decompress(content, _LONGEST))
        if values["f"] != _FORMAT:
            raise ValueError(f"it has the format {values['f']}, and {_FORMAT} is known here")
        frontier = {
            name: Snapshot(TableIdentity(place, id_), version, commit)
            for name, (place, id_, version, commit) in values["v"].items()
        }
        snapshot, columns = bool(values["s"]), values["n"]
        return Position(values["r"], values["c"], values["t"], frontier, snapshot, columns)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise RefusedOperation(
            "the resume token is damaged",
            why=f"{str(token)[:20]!r} cannot be read: {error}",
            fix="give the token of a subscription unchanged, or begin without one",
        ) from error


def require_of(position: Position, fingerprint: str, sources: Iterable[str], clock: str) -> None:
    """
    Raises:
        RefusedOperation: The token belongs to another subscription.
    """
    # A token may come from anywhere, and must not open other tables.
    same_sources = position.frontier.keys() == set(sources)
    if position.fingerprint != fingerprint or not same_sources:
        raise RefusedOperation(
            "the resume token belongs to another subscription",
            why="it was given for another relation, or the relation has other columns now",
            fix="give the token to the subscription that it came from, or begin without one",
        )
    if position.clock != clock:
        raise RefusedOperation(
            f'the resume token counts by the clock "{position.clock}", not by "{clock}"',
            why="a timestamp of one clock means nothing to another",
            fix=f'choose clock="{position.clock}", or begin without the token',
        )


def _encode(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_DIGEST]


@dataclass(frozen=True)
class StartPoint:
    """The start of a subscription."""

    relation: SubscriptionRelation
    """With the columns that it had then."""
    clock: SubscriptionClock
    first: Instant | None
    """None if not known yet: the newest one, or one in the future."""
    snapshot: bool
    position: Position | None = None
    """The position that is resumed, if any."""
    lost: str = ""
    """Why a position could not be resumed, if a snapshot replaces it."""


@dataclass(frozen=True)
class SubscriptionRequest:
    """A relation as a caller names it, and how to read it."""

    lake: Lake
    relation: str | StreamTable
    dialect: str = "spark"
    session_timezone: str = "UTC"
    recompute: bool = False
    clock: str | None = None

    def start_new(
        self, as_of: AsOf = None, up_to: Bound | None = None, *, snapshot: bool
    ) -> StartPoint:
        """
        Raises:
            RefusedOperation: The end is before the beginning.
            HistoryUnavailable: The beginning can no longer be read.
        """
        relation = self.relation_at(None)
        clock = _clock_of(self.lake, relation, self.clock)
        _require_bounds(clock, as_of, up_to)
        first = None if as_of is None else clock.first(as_of)
        if first is not None:
            relation = relation.as_of(first.frontier)
            clock = _clock_of(self.lake, relation, self.clock)
        return StartPoint(relation, clock, first, snapshot)

    def resume_at(
        self, position: Position, *, restart: bool, slot: Slot | None = None
    ) -> StartPoint:
        """The start after what was read last; a snapshot if its history is lost and `restart`.

        Raises:
            RefusedOperation: The position is of another relation or clock.
            HistoryUnavailable: It can no longer be read, and must not be replaced by a snapshot.
        """
        try:
            relation = self.relation_at(position)
            if slot is not None and slot.fingerprint != relation.fingerprint:
                raise of_another_relation(slot.name, slot.relation)
            clock = _clock_of(self.lake, relation, self.clock or position.clock)
            require_of(position, relation.fingerprint, relation.sources, clock.name)
            first = _instant(relation, clock, position)
        except HistoryUnavailable as error:
            if not restart:
                raise
            same = replace(self, clock=self.clock or position.clock)
            return replace(same.start_new(snapshot=True), lost=error.what)
        return StartPoint(relation, clock, first, position.snapshot, position)

    def relation_at(self, position: Position | None) -> SubscriptionRelation:
        """The relation with the columns that it had at a position; None for the newest ones."""
        access, relation, zone = self.lake.access, self.relation, self.session_timezone
        given = relation if isinstance(relation, str) else relation.name
        # Only a declaration checks a time zone.
        table = table_of(given, access.views) if zone == "UTC" else None
        if table is not None:
            sources = (access.catalog.exact_name(table),)
            made = partial(relation_of_table, access, given)
        else:
            declaration = declare_relation(
                relation, dialect=self.dialect, session_timezone=zone, views=access.views,
                recompute=self.recompute,
            )  # fmt: skip
            declaration = with_exact_names(declaration, access.catalog.exact_name)
            sources = declaration.sources
            made = partial(relation_of, access, declaration, given)
        if position is None:
            return made(frontier.newest(access.catalog, sources))
        read = {n: then for n, then in position.frontier.items() if n in sources}
        for name, then in read.items():
            frontier.require_same_history(name, access.catalog.newest(name), then)
        at = frontier.newest(access.catalog, sources)
        for name, then in read.items():
            at[name] = frontier.at_version(name, at[name], then.version)
        return made(at, position.columns)


def _clock_of(lake: Lake, relation: SubscriptionRelation, name: str | None) -> SubscriptionClock:
    """
    Raises:
        RefusedOperation: The version clock is requested, and cannot count the relation.
    """
    simple = len(relation.sources) == 1 and not relation.is_time_dependent
    if name == "version" or (name is None and simple):
        return VersionClock.of(relation)
    return MillisecondClock(relation, VersionTimeline(lake.root, lake.storage_options))


def _require_bounds(clock: SubscriptionClock, as_of: AsOf, up_to: Bound | None) -> None:
    """
    Raises:
        RefusedOperation: The end is before the beginning, as far as known now.
    """
    begin = as_of.time if isinstance(as_of, AtLeast) else as_of
    if begin is None or up_to is None:
        return
    first, end = clock.timestamp(begin), clock.timestamp(up_to)
    if first is not None and end is not None:
        require_order(first, end)
    elif not isinstance(begin, int) and not isinstance(up_to, int):
        require_order(begin, up_to)


def _instant(
    relation: SubscriptionRelation, clock: SubscriptionClock, position: Position
) -> Instant:
    """The instant of a position.

    Raises:
        HistoryUnavailable: It can no longer be read.
    """
    catalog = relation.access.catalog
    logs = {}
    for name, then in position.frontier.items():
        now = frontier.require_same_history(name, catalog.newest(name), then)
        if not frontier.is_readable(now, then.version):
            raise frontier.unavailable(name, now, then.version, "files that it needs were deleted")
        logs[name] = frontier.at_version(name, now, then.version)
    return clock.instant(position.timestamp, logs)
