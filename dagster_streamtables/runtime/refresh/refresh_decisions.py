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
from functools import partial

from dagster_streamtables.amounts import count
from dagster_streamtables.compiler import Plan
from dagster_streamtables.errors import SourceProblem
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import Capture, SourceChange
from dagster_streamtables.runtime.model.costs import Choice, Forecast, RefreshMethod
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.refresh_work import same_meaning
from dagster_streamtables.runtime.model.stream_table import CdcMode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.model.table_state import (
    SourceState,
    TableInStorage,
    TableWithState,
)

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


@dataclass(frozen=True, kw_only=True)
class NoChange(Decision):
    """Nothing changed: at most the frontier moves."""

    log: TableLog
    """The stored table."""


@dataclass(frozen=True, kw_only=True)
class Differential(Decision):
    """The change is computed, and the stored rows are updated."""

    plan: Plan
    stored: TableWithState


def foundation(
    stored: TableInStorage | None, query: str, sources: Mapping[str, Source], *, counts: bool
) -> TableWithState | Decision:
    """The stored table if it can be updated, otherwise the decision to rebuild it.

    `query` is the fingerprint of its definition; `counts`, whether the query may have all columns
    of a source, as with `*`.
    """
    if stored is None:
        return Decision(Action.REINITIALIZE, "there is no table yet")
    if stored.refreshed is None:
        reason = "the table has no frontier from which a refresh could start"
        return Decision(Action.REINITIALIZE, reason)
    reason = _why_rebuild(stored.refreshed, query, sources, counts)
    return stored.refreshed if reason is None else Decision(Action.REINITIALIZE, reason)


def require_columns(
    stored: TableInStorage | None, query: str, sources: Mapping[str, Source], *, counts: bool
) -> None:
    """Refuse changed columns. The arguments are those of `foundation`.

    Raises:
        SourceProblem: A column that the query uses was removed, or its type changed.
    """
    if stored is None or stored.state is None:
        return
    whole = counts or stored.state.query == query
    for name, source in sources.items():
        seen = stored.state.sources.get(name)
        if seen is None or _same_columns(seen, source, whole=whole):
            continue
        raise SourceProblem(
            f'columns of "{name}" that the query uses changed',
            why=_differing(seen.columns, source.columns),
            fix="change them back, refresh in full once to accept them, or set on_schema_change "
            "to reinitialize; the table is unchanged",
        )


def require_no_manual_write(stored: TableInStorage | None) -> None:
    """Refuse a table that was changed after its last refresh.

    Raises:
        SourceProblem: Another writer changed its rows, or replaced it by another table.
    """
    last = stored.refreshed if stored is not None else None
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


def _why_rebuild(
    stored: TableWithState, query: str, sources: Mapping[str, Source], counts: bool
) -> str | None:
    state = stored.state
    whole = counts or state.query == query
    if stored.disturbed:
        return f"somebody else changed rows of the table after version {stored.committed}"
    if not same_meaning(state.query, query):
        return "the definition changed"
    for name, source in sources.items():
        seen = state.sources.get(name)
        if seen is None:
            return f'the frontier does not know "{name}"'
        if seen.id != source.log.id:
            return f'"{name}" was dropped and created again'
        if seen.version > source.log.version:
            return (
                f'"{name}" is at version {source.log.version}, before the {seen.version} read last'
            )
        if source.log.commit_at(seen.version) is None and seen.version < source.log.version:
            return _log_gap(name)
        if not source.log.has(seen.snapshot(source.log.location)):
            return (
                f'"{name}" was restored: version {seen.version} is not the one that was read last'
            )
        if not _same_columns(seen, source, whole=whole):
            return f'columns of "{name}" that the query uses changed'
    return None


def _log_gap(name: str) -> str:
    return f'the log of "{name}" no longer has all commits since last time'


def choose(
    table: StreamTable,
    plan: Plan | None,
    stored: TableWithState,
    sources: Mapping[str, Source],
    changes: Mapping[str, SourceChange],
    *,
    full: bool,
    refusal: str | None,
    timed: bool = False,
    choice: Choice | None = None,
) -> Decision:
    """Decide what to do with a table that can be updated.

    `plan` is None in mode FULL, and in AUTO if the query cannot be maintained, for the reason
    `refusal`. `full`: the caller requested a full refresh. `timed`: the query uses the current
    time. `choice` is the cheaper way, in mode AUTO if refreshes were measured.
    """
    lost = [name for name, change in changes.items() if change.lost]
    if lost:
        return Decision(Action.REINITIALIZE, _log_gap(lost[0]))
    if full:
        return Decision(Action.FULL, "asked for")
    moved = [name for name, change in changes.items() if change.has_changes]
    if not moved and not timed:
        return NoChange(Action.NO_DATA, _why_nothing(changes), log=stored.log)
    if plan is None:
        why = "the mode is FULL" if refusal is None else f"the mode is AUTO, and {refusal}"
        return Decision(Action.FULL, why if moved else "time passed")
    differential = partial(Differential, Action.DIFFERENTIAL, plan=plan, stored=stored)
    if not moved:
        return differential("time passed")
    came = _change_summary(moved, changes)
    if choice is not None:
        reason = f"{came}; {choice}"
        if choice.way is RefreshMethod.FULL:
            return Decision(Action.FULL, reason, choice.forecast)
        return differential(reason, choice.forecast)
    for name in moved:
        reason = _too_much(name, table, sources[name], changes[name])
        if reason is not None:
            return Decision(Action.FULL, reason)
    return differential(came)


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


def _why_nothing(changes: Mapping[str, SourceChange]) -> str:
    if any(change.capture is Capture.FILES for change in changes.values()):
        return "no rows changed, files were rearranged only"
    return NOTHING_NEW


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
