"""Which change assets have something to do, from slots and logs alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.changes.position import position_of
from dagster_streamtables.orchestration.changes.feed_metadata import Follows
from dagster_streamtables.orchestration.instance.last_runs import History
from dagster_streamtables.runtime.delta.delta_log import Logs
from dagster_streamtables.runtime.delta.source_change import rows_moved
from dagster_streamtables.runtime.observe.slots import Held, Slot
from dagster_streamtables.scheduling.dueness import Backoff

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class News:
    """Whether a change asset should run."""

    due: bool
    held: str = ""
    """Why it does not run, although it may have something to do."""


def news(lake: Lake, follows: Follows, history: History, now: datetime, backoff: Backoff) -> News:
    """Whether a run of a change asset would find rows."""
    if history.run:
        return News(False, f"run {history.run} is not finished")
    if history.failures and history.failed_at is not None:
        until = backoff.until(history.failures, history.failed_at)
        if now < until:
            failed = f"it failed {history.failures} times in a row"
            return News(False, f"{failed}, and is tried again at {until:%Y-%m-%d %H:%M:%S}")
    slot = lake.slots.find(follows.slot)
    if slot is None:
        missing = [name for name in follows.sources if lake.version(name) is None]
        return News(not missing, f"{', '.join(missing)} does not exist yet" if missing else "")
    return _of_slot(lake, slot, follows, now)


def _of_slot(lake: Lake, slot: Slot, follows: Follows, now: datetime) -> News:
    if slot.lost and not follows.resnapshot:
        return News(False, f'slot "{slot.name}" was let go: {slot.reason}')
    if slot.reader is not None and slot.reader.runs(now):
        until = slot.reader.until
        return News(False, f"somebody reads its slot, at least until {until:%H:%M:%S}")
    if slot.lost or not slot.token or position_of(slot.token).snapshot:
        return News(True)
    logs = Logs(lake.storage_options)
    if any(_moved(held, logs) for held in slot.held.values()):
        return News(True)
    _keep(lake, slot)
    return News(False)


def _moved(held: Held, logs: Logs) -> bool:
    """Whether rows changed since; also if that cannot be told, so that a run reports why."""
    log = logs.newest(held.location)
    if log is None or log.id != held.table or log.version < held.version:
        return True
    return rows_moved(log, held.version)


def _keep(lake: Lake, slot: Slot) -> None:
    """Begin the deadline of an idle slot anew once half of it has passed: nothing has changed."""
    if slot.is_abandoned():
        lake.slots.touch(slot.name)
