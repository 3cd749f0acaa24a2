"""`subscribe` and `tail`: begin to follow the changes of a relation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from dagster_streamtables.changes.beginning import SubscriptionRequest
from dagster_streamtables.changes.clock.bounds import AtLeast, as_of_bound, bound
from dagster_streamtables.changes.follow import ChangeEventSource
from dagster_streamtables.changes.output.envelope import Envelope
from dagster_streamtables.changes.output.order import Term
from dagster_streamtables.changes.output.shape import RowEncoder
from dagster_streamtables.changes.position import position_of
from dagster_streamtables.changes.slot_reader import SlotReader, find_slot
from dagster_streamtables.changes.slots import new_slot
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range, check_arguments

Time = int | str | date | datetime
_POLL, _POLL_REMOTE = 0.1, 1.0
DEADLINE = timedelta(days=7)
"""A slot that `subscribe` makes is let go if nobody has used it for so long."""


@check_arguments
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
    session_timezone: str = "UTC",
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
        session_timezone: The time zone of the days and hours of a SELECT, or of a view. With a slot
            or a token, the one that it began with.
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
    start = as_of_bound(as_of)
    end = None if up_to is None else bound(up_to, "up_to")
    restart = on_history_lost == "resnapshot"
    followed = SubscriptionRequest(lake, relation, dialect, session_timezone, recompute, clock)
    kept = None if slot is None else find_slot(lake.slots, slot, restart=restart)
    token = resume or (kept.token if kept is not None else "")
    if token:
        begin = followed.resume_at(position_of(token), restart=restart, slot=kept)
    elif kept is not None:
        begin = followed.start_new(snapshot=True)
    else:
        begin = followed.start_new(start, end, snapshot=snapshot)
    shape = RowEncoder(
        begin.relation.schema, envelope=envelope, order_by=order_by, progress=progress, names=names,
        batch_rows=batch_rows,
    )  # fmt: skip
    reader = None
    if slot is not None:
        if kept is None:
            new_slot(
                lake.slots, slot, begin.relation, begin.clock, start, snapshot=snapshot,
                deadline=DEADLINE,
            )  # fmt: skip
        reader = SlotReader.take(lake.slots, slot, begin, restart=restart)
        begin = reader.adjust_start(followed, begin, restart=restart)
    follower = ChangeEventSource(
        begin.relation, begin.clock, shape, end, progress, progress_interval, restart
    )
    events = follower.events(start, begin)
    poll = poll_interval or (_POLL_REMOTE if is_remote(lake.root) else _POLL)
    return Subscription(
        events, shape.schema, start=begin.position, poll_interval=poll, slot=reader, lost=begin.lost
    )


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
