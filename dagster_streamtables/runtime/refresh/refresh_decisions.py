"""Decide what a refresh does, from the logs, before Spark is used.

the query, the identity of a source, or a column that it uses changed        REINITIALIZE
the window can no longer be read, or somebody else changed rows              REINITIALIZE
no source changed, and the query does not use the current time               NO_DATA
mode FULL; mode AUTO, and the query cannot be maintained                     FULL
mode AUTO, and similar refreshes were measured                               the cheaper way
more rows changed than the ratio allows, and not only a few thousand         FULL
otherwise                                                                    DIFFERENTIAL
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_streamtables.amounts import count
from dagster_streamtables.errors import SourceProblem
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import Capture, SourceChange
from dagster_streamtables.runtime.model.costs import Choice, Forecast, RefreshMethod
from dagster_streamtables.runtime.model.refresh_report import Action, FullReason
from dagster_streamtables.runtime.model.refresh_work import same_meaning
from dagster_streamtables.runtime.model.stream_table import CdcMode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.model.table_state import SourceState, TableWithState
from dagster_streamtables.runtime.refresh.refresh_job import Job

NOTHING_NEW = "no source has a new version"
FEW_ROWS = 5_000
"""Up to this many changed rows are computed in a fraction of a second; above, the ratio decides. In
a source of nine rows, an update and an insert are a third."""


@dataclass(frozen=True)
class Decision:
    action: Action
    reason: str
    forecast: Forecast | None = None
    fallback: str = ""
    """As in `Refresh`."""
    full_reason: FullReason | None = None
    """As in `Refresh`."""


def foundation(job: Job) -> TableWithState | Decision:
    """The stored table if it can be updated, otherwise the decision to rebuild it."""
    if job.stored is None:
        return rebuild("there is no table yet", FullReason.FIRST)
    last = job.stored.refreshed
    if last is None:
        reason = "the table has no frontier from which a refresh could start"
        return rebuild(reason, FullReason.MANUAL_WRITE)
    return _why_rebuild(job, last) or last


def rebuild(reason: str, full_reason: FullReason = FullReason.DEFINITION) -> Decision:
    """The decision to store the table anew."""
    return Decision(Action.REINITIALIZE, reason, full_reason=full_reason)


def require_columns(job: Job) -> None:
    """Refuse changed columns.

    Raises:
        SourceProblem: A column that the query uses was removed, or its type changed.
    """
    last = job.last_refresh
    for name, source in job.sources.items():
        seen = last.state.sources.get(name) if last is not None else None
        if seen is None or _same_columns(seen, source, whole=job.counts or job.fits):
            continue
        raise SourceProblem(
            f'columns of "{name}" that the query uses changed',
            why=_differing(seen.columns, source.columns),
            fix="change them back, refresh in full once to accept them, or set on_schema_change "
            "to reinitialize; the table is unchanged",
        )


def require_no_manual_write(job: Job) -> None:
    """Refuse a table that was changed after its last refresh.

    Raises:
        SourceProblem: Another writer changed its rows, or replaced it by another table.
    """
    stored, last = job.stored, job.last_refresh
    if stored is None or (last is not None and not last.disturbed):
        return
    if last is None:
        why = "no commit of it has the state of a refresh: another table may have replaced it"
    else:
        why = f"version {last.committed} is the last that a refresh wrote; rows changed since"
    raise SourceProblem(
        "another writer changed the table",
        where=stored.log.location,
        why=why,
        fix="save their rows elsewhere, and refresh in full once, which runs the query again; "
        "or set on_manual_write to repair; the table is unchanged",
    )


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    differences: list[str] = []
    for name in sorted({*before, *after}):
        was, is_ = before.get(name, "not used"), after.get(name, "not used")
        if was != is_:
            differences.append(f"{name} was {was}, and is {is_}")
    return "; ".join(differences)


def _same_columns(seen: SourceState, source: Source, *, whole: bool) -> bool:
    """Whether the columns that the query uses of a source are unchanged.

    After a change of mode, which may use more or fewer, only common columns are compared, unless
    `whole`.
    """
    before, after = dict(seen.columns), dict(source.columns)
    if whole:
        return before == after and dict(seen.encodings) == dict(source.encodings)
    if not (before.items() <= after.items() or after.items() <= before.items()):
        return False
    both = before.keys() & after.keys()
    return all(seen.encodings.get(name) == source.encodings.get(name) for name in both)


def _why_rebuild(job: Job, last: TableWithState) -> Decision | None:
    if last.disturbed:
        reason = f"somebody else changed rows of the table after version {last.committed}"
        return rebuild(reason, FullReason.MANUAL_WRITE)
    if not same_meaning(last.state.query, job.fingerprint):
        return rebuild("the definition changed", FullReason.DEFINITION)
    for name, source in job.sources.items():
        seen = last.state.sources.get(name)
        if seen is None:
            return rebuild(f'the frontier does not know "{name}"', FullReason.SOURCE)
        if reason := _other_table(name, seen, source.log):
            return rebuild(reason, FullReason.SOURCE)
        if source.log.commit_at(seen.version) is None and seen.version < source.log.version:
            return rebuild(_log_gap(name), FullReason.HISTORY)
        if not source.log.has(seen.snapshot(source.log.location)):
            reason = (
                f'"{name}" was restored: version {seen.version} is not the one that was read last'
            )
            return rebuild(reason, FullReason.SOURCE)
        if not _same_columns(seen, source, whole=job.counts or job.fits):
            reason = f'columns of "{name}" that the query uses changed'
            return rebuild(reason, FullReason.SCHEMA)
    return None


def _other_table(name: str, seen: SourceState, log: TableLog) -> str:
    """Why a source is not the table that was read; empty if it may be."""
    if seen.id != log.id:
        return f'"{name}" was dropped and created again'
    if seen.version > log.version:
        return f'"{name}" is at version {log.version}, before the {seen.version} read last'
    return ""


def _log_gap(name: str) -> str:
    return f'the log of "{name}" no longer has all commits since last time'


def choose(job: Job, changes: Mapping[str, SourceChange], choice: Choice | None) -> Decision:
    """Decide what to do with a table that can be updated; `choice` is the cheaper way, in mode AUTO
    if refreshes were measured."""
    lost = [name for name, change in changes.items() if change.lost]
    if lost:
        return rebuild(_log_gap(lost[0]), FullReason.HISTORY)
    if job.full:
        return Decision(Action.FULL, "asked for", full_reason=FullReason.REQUESTED)
    moved = [name for name, change in changes.items() if change.has_changes]
    if not moved and not job.uses_time:
        rearranged = any(change.capture is Capture.FILES for change in changes.values())
        reason = "no rows changed, files were rearranged only" if rearranged else NOTHING_NEW
        return Decision(Action.NO_DATA, reason)
    if job.plan is None:
        refusal = job.refusal
        why = "the mode is FULL" if refusal is None else f"the mode is AUTO, and {refusal}"
        kind = FullReason.MODE if refusal is None else FullReason.UNSUPPORTED
        return Decision(Action.FULL, why if moved else "time passed", full_reason=kind)
    if not moved:
        return Decision(Action.DIFFERENTIAL, "time passed")
    came = _change_summary(moved, changes)
    if choice is not None:
        said = f"{came}; {choice}"
        if choice.way is RefreshMethod.FULL:
            return Decision(Action.FULL, said, choice.forecast, full_reason=FullReason.COST)
        return Decision(Action.DIFFERENTIAL, said, choice.forecast)
    for name in moved:
        reason = _too_much(name, job.table, job.sources[name], changes[name])
        if reason is not None:
            return Decision(Action.FULL, reason, full_reason=FullReason.RATIO)
    return Decision(Action.DIFFERENTIAL, came)


def apply_cdc_mode(name: str, change: SourceChange, mode: CdcMode) -> SourceChange:
    """The window of a source, read by the chosen mode.

    Raises:
        SourceProblem: The feed must be read, and it does not cover the window.
    """
    if mode is CdcMode.SNAPSHOT and change.capture is Capture.FEED:
        return change.without_feed
    if mode is CdcMode.CDF and change.capture is Capture.SNAPSHOTS and not change.lost:
        raise SourceProblem(
            f'the change feed of "{name}" does not cover the window',
            why=f"rows were changed after version {change.before} while the table wrote no feed, "
            "or its properties changed",
            fix="set delta.enableChangeDataFeed on it and refresh in full once, or set cdc_mode to "
            "auto",
        )
    return change


def _too_much(name: str, table: StreamTable, source: Source, change: SourceChange) -> str | None:
    ratio = table.differential_max_change_ratio
    if ratio == 0 or change.rows is None or not source.log.row_count:
        return None
    few = change.rows <= ratio * source.log.row_count or change.rows <= FEW_ROWS
    if ratio < 1 and few:
        return None
    # More than 100% is possible: an update counts as two rows, and a row may change repeatedly.
    return (
        f'{count(change.rows, "changed row")} in "{name}", which has {source.log.row_count:,}: '
        f"more than the ratio {ratio:g}"
    )


def _change_summary(moved: list[str], changes: Mapping[str, SourceChange]) -> str:
    parts: list[str] = []
    for name in moved:
        rows = changes[name].rows
        said = "changed rows" if rows is None else count(rows, "changed row")
        parts.append(f'{said} in "{name}"')
    return ", ".join(parts)
