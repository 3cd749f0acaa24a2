"""`subscribe` and `tail`: begin to follow the changes of a relation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from dagster_streamtables.changes.clock.bounds import AsOf, AtLeast, as_of_bound, bound
from dagster_streamtables.changes.clock.clock import Clock, Instant
from dagster_streamtables.changes.clock.millisecond_clock import MillisecondClock
from dagster_streamtables.changes.clock.timeline import Timeline
from dagster_streamtables.changes.clock.version_clock import VersionClock
from dagster_streamtables.changes.follow import Follower
from dagster_streamtables.changes.output.envelope import Envelope
from dagster_streamtables.changes.output.order import Term
from dagster_streamtables.changes.output.shape import Shape
from dagster_streamtables.changes.position import (
    Position,
    position_of,
    require_same_subscription,
)
from dagster_streamtables.changes.relation import frontier
from dagster_streamtables.changes.relation.declare import declared
from dagster_streamtables.changes.relation.relation import Relation, relation_of
from dagster_streamtables.changes.slot_reader import SlotReader
from dagster_streamtables.changes.slots import new_slot
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range, checked

Time = int | str | date | datetime
_POLL, _POLL_REMOTE = 0.1, 1.0
DEADLINE = timedelta(days=7)
"""A slot that `subscribe` makes is let go if nobody has used it for so long."""


@checked
def subscribe(
    lake: Lake,
    relation: str | StreamTable,
    *,
    as_of: Time | AtLeast | None = None,
    up_to: Time | None = None,
    snapshot: bool = True,
    progress: bool = False,
    envelope: Envelope | None = None,
    order_by: str | int | Term | Sequence[str | int | Term] = (),
    clock: Literal["version", "ms"] | None = None,
    names: Literal["delta", "materialize"] = "delta",
    resume: str | None = None,
    slot: str | None = None,
    on_history_lost: Literal["error", "resnapshot"] = "error",
    recompute: bool = False,
    dialect: str = "spark",
    batch_rows: Annotated[int, Range(1)] = 65_536,
    poll_interval: Annotated[float, Range(0)] | None = None,
    progress_interval: Annotated[float, Range(0)] = 10.0,
) -> Subscription:
    """Follow the changes of a relation: first its rows, then every change, in order of time.

    Each row has a timestamp, and the number of copies that came (positive) or went (negative). The
    numbers of one row, added up to a timestamp, are its copies at that timestamp.

    Args:
        lake: Where its tables are.
        relation: A source, a stream table or a view, by name; a Delta table by path; or a SELECT,
            which is maintained without being stored.
        as_of: Begin with the rows as of this time: a number of the clock, a date and time,
            "latest" (as None), or `AtLeast`. A time in the future is waited for.
        up_to: End before this time.
        snapshot: Whether to begin with the rows as of `as_of`; if not, with the changes after it.
        progress: Whether to give out rows that say that no earlier timestamp follows.
        envelope: `Upsert` or `Debezium`, by a key, in place of the number of copies.
        order_by: The order of rows within a timestamp; 1 is the number of copies.
        clock: "version" counts the versions of the only source, "ms" milliseconds since 1970. None
            is "version" where that is possible.
        names: How the leading columns are called: ``_timestamp`` or ``mz_timestamp``.
        resume: The `token` of an earlier subscription, in place of `as_of` and `snapshot`.
        slot: The name of a durable position. `Subscription.ack` moves it, the next subscription
            with that name begins there, and vacuums keep what it needs. One that does not exist is
            created, and let go if nobody uses it for a week.
        on_history_lost: Whether to fail, or begin again with a snapshot, if a vacuum or a clean-up
            of the log removed what comes next.
        recompute: Whether a query whose change cannot be computed may be run again at each
            timestamp, and compared.
        dialect: The SQL dialect of a SELECT.
        batch_rows: The most rows of a batch.
        poll_interval: Seconds between looks at the logs; None for 0.1, and 1 for an object store.
        progress_interval: Seconds between rows of progress while nothing changes, where the clock
            goes on without changes.

    Raises:
        RefusedOperation: An option, a bound or the token does not fit.
        InvalidDefinition: The query is not valid.
        UnsupportedQuery: Its change cannot be computed.
        MissingSource: A table does not exist.
        HistoryUnavailable: `as_of`, or the resumed position, can no longer be read.
        SlotInUse: Somebody else reads the slot.
        LostSlot: The slot was let go.
    """
    _check_options(as_of, snapshot=snapshot, resume=resume, slot=slot)
    position = None if resume is None else position_of(resume)
    start = as_of_bound(as_of)
    end = None if up_to is None else bound(up_to, "up_to")
    found = follow(lake, relation, dialect=dialect, recompute=recompute, position=position)
    chosen = clock_of(lake, found, clock or (None if position is None else position.clock))
    shape = Shape(
        found.schema, envelope=envelope, order_by=order_by, progress=progress, names=names,
        batch_rows=batch_rows,
    )  # fmt: skip
    restart = on_history_lost == "resnapshot"
    reader = None
    if slot is not None:
        reader = _reader(lake, slot, found, chosen, start, snapshot=snapshot, restart=restart)
        position = reader.position
    follower = Follower(found, chosen, shape, end, progress, progress_interval, restart)
    if position is None:
        events = follower.begun(start, snapshot=snapshot)
    else:
        require_same_subscription(position, found.fingerprint, chosen.name)
        last = _instant(found, chosen, position)
        events = follower.resumed(last, snapshot=position.snapshot)
    poll = poll_interval or (_POLL_REMOTE if is_remote(lake.root) else _POLL)
    return Subscription(events, shape.schema, start=position, poll_interval=poll, slot=reader)


def tail(
    lake: Lake,
    name: str | StreamTable,
    *,
    as_of: Time | None = None,
    snapshot: bool = True,
    progress: bool = False,
) -> Subscription:
    """`subscribe` as its predecessor was: one named relation, and columns named ``mz_…``.

    Raises:
        RefusedOperation: A query is given.
        StreamTablesError: As `subscribe`.
    """
    text = name.name if isinstance(name, StreamTable) else name
    if len(text.split()) != 1:
        raise RefusedOperation(
            "TAIL follows a table or a view by its name",
            why=f'"{text[:80]}" is a query',
            fix="use subscribe, which follows any SELECT",
        )
    return subscribe(
        lake, name, as_of=as_of, snapshot=snapshot, progress=progress, names="materialize"
    )


def follow(
    lake: Lake,
    relation: str | StreamTable,
    *,
    dialect: str = "spark",
    recompute: bool = False,
    position: Position | None = None,
) -> Relation:
    """What a caller names, with the columns of its newest version, or of a position."""
    access = lake.access
    declaration = declared(relation, dialect=dialect, views=access.views, recompute=recompute)
    at = frontier.newest(access.catalog, declaration.sources)
    for name, then in (position.frontier if position is not None else {}).items():
        if name in at:
            now = frontier.require_same_history(name, at[name], then)
            at[name] = frontier.at_version(access.catalog, name, now, then.version)
    given = relation if isinstance(relation, str) else relation.name
    return relation_of(access, declaration, given, at)


def clock_of(lake: Lake, relation: Relation, name: str | None) -> Clock:
    """
    Raises:
        RefusedOperation: The version clock is asked for, and cannot count the relation.
    """
    simple = len(relation.sources) == 1 and not relation.timed
    if name == "version" or (name is None and simple):
        return VersionClock.of(relation)
    return MillisecondClock(relation, Timeline(lake.root, lake.storage_options))


def _instant(relation: Relation, clock: Clock, position: Position) -> Instant:
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
        logs[name] = frontier.at_version(catalog, name, now, then.version)
    return clock.instant(position.timestamp, logs)


def _reader(
    lake: Lake,
    name: str,
    relation: Relation,
    clock: Clock,
    as_of: AsOf,
    *,
    snapshot: bool,
    restart: bool,
) -> SlotReader:
    if name not in lake.slots.names():
        new_slot(lake.slots, name, relation, clock, as_of, snapshot=snapshot, deadline=DEADLINE)
    catalog = lake.access.catalog
    return SlotReader.take(lake.slots, name, relation.fingerprint, catalog, restart=restart)


def _check_options(as_of: Any, *, snapshot: bool, resume: str | None, slot: str | None) -> None:
    if resume is not None and slot is not None:
        raise RefusedOperation(
            "a resume token and a slot exclude each other",
            why="each of them says where to begin",
            fix="give one of them",
        )
    if (as_of is not None or not snapshot) and resume is not None:
        raise RefusedOperation(
            "a resumed subscription begins where the token says",
            why="as_of and snapshot say so, too",
            fix="leave out as_of and snapshot, or the token",
        )
