"""The checks that each stream table has, and their schedules; a new check is a function here and an
entry in `KINDS`.

state, columns  Need Spark: one scans the stored table, one analyzes the query. Neither runs it.
freshness       Reads only logs.
retention       Reads only logs. A table that is suspended, or refreshed once a quarter, can lose
                the history of its sources that its next refresh needs, and is then reinitialized.
                A warning days before avoids this.
equality        Spark recomputes the query as the user wrote it, so the check shares only the
                versions with the compiled change. It costs a full run of the query, so it has its
                own schedule and never blocks a refresh.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import duration, share
from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    Tables,
    build_catalog,
)
from dagster_streamtables.orchestration.checks.check_kind import (
    ERROR,
    WARN,
    CheckSettings,
    Evaluation,
    StreamTableCheck,
    check_schedule,
)
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.stream_table import OnFull, OnSchemaChange, StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Comparison
    from dagster_streamtables.runtime.observe.source_health import SourceHealth


def check_state(given: Evaluation) -> dg.AssetCheckResult:
    """Is the stored state of a table consistent?

    Counts are positive, each key has one row, visible columns follow from the hidden ones, the
    frontier is not ahead of the sources, and intermediate tables match it. It fails with the rows.

    Raises:
        StreamTablesError: The table cannot be read.
    """
    found = given.lake.checks.invariants(given.examined.table)
    said = "; ".join(map(str, found.violations)) or "The stored state is consistent."
    metadata: dict[str, Any] = {
        keys.VIOLATIONS: len(found.violations),
        keys.VERSION: found.version,
        keys.SECONDS: float(found.seconds),
    }
    if found.sample:
        metadata[keys.SAMPLE] = keys.rows_table(found.sample, first="__broken")
    return dg.AssetCheckResult(
        passed=not found.violations,
        severity=given.severity,
        description=said + (f" Rows were not checked: {found.left_out}." * bool(found.left_out)),
        metadata=metadata,
    )


def check_columns(given: Evaluation) -> dg.AssetCheckResult:
    """Do the columns of a table, and the source columns that it uses, match its definition?

    It fails, with the columns, if the next refresh will reinitialize the table or refuse to run.

    Raises:
        StreamTablesError: The query does not fit its sources, or the table cannot be read.
    """
    table = given.examined.table
    found = given.lake.checks.drift(table)
    refuses = table.on_schema_change is OnSchemaChange.FAIL
    does = "refuses to run" if refuses else "reinitializes the table"
    said = "; ".join(map(str, found))
    rows = [
        {"table": each.table, "column": each.column, "is": str(each.kind), "was": each.was,
         "now": each.now}
        for each in found
    ]  # fmt: skip
    return dg.AssetCheckResult(
        passed=not found,
        severity=given.severity,
        description=f"{said}. The next refresh {does}." if found else "All columns match.",
        metadata={keys.DRIFT: keys.rows_table(rows, first="table")} if rows else {},
    )


def check_freshness(given: Evaluation) -> dg.AssetCheckResult:
    """Do changes of its sources reach a table within its schedule, and does no refresh fail?

    Unlike Dagster's freshness policy, it covers schedules shorter than a minute, and passes while
    the sources do not change, however old the last refresh is. It warns when the first commit that
    the table does not reflect is older than the schedule allows, and is an error after another
    interval of the schedule, and as soon as a refresh fails: until one succeeds, nothing reaches
    the table.

    Raises:
        StreamTablesError: The table or a source cannot be read.
    """
    lake, table, now = given.lake, given.examined.table, given.now
    schedule, grace = given.examined.schedule, given.settings.grace
    failure = _failure(lake, table)
    try:
        found = lake.checks.behind(table)
    except MissingSource:
        if not failure:
            raise
        found = []
    late = [each for each in found if _late(each, schedule, now - grace, turns=0)]
    very = [each for each in late if _late(each, schedule, now - grace, turns=1)]
    ages = [(now - each.behind_since).total_seconds() for each in found if each.behind_since]
    return dg.AssetCheckResult(
        passed=not (late or failure),
        severity=ERROR if very or failure else WARN,
        description="; ".join([*failure, *_lateness(late, now)]) or _timely(found, schedule),
        metadata={keys.BEHIND: float(max(ages, default=0.0)), keys.LATE: bool(late)},
    )


def _failure(lake: Lake, table: StreamTable) -> list[str]:
    """Why the last refresh failed, unless there is nothing to refresh."""
    control = lake.controls.of(table)
    if not control.error or not lake.checks.pending(table):
        return []
    at = f"{datetime.fromisoformat(control.at):%Y-%m-%d %H:%M:%S} UTC"
    if control.gave_up:
        return [f"It is suspended since {at}, because {control.gave_up}"]
    return [f"The last refresh failed at {at}: {control.error}"]


def _late(each: SourceHealth, schedule: Schedule | None, now: datetime, *, turns: int) -> bool:
    if each.is_missing:
        return True
    if schedule is None or each.behind_since is None:
        return False
    allowed = turns * timedelta(seconds=schedule.longest_gap())
    return bool(each.lost) or now > schedule.deadline(each.behind_since) + allowed


def _lateness(late: list[SourceHealth], now: datetime) -> Iterator[str]:
    for each in late:
        if each.is_missing:
            yield each.lost
            continue
        since = each.behind_since or now
        yield (
            f"it reflects version {each.frontier} of {each.source}, which is at {each.newest}, "
            f"and lacks changes since {since:%Y-%m-%d %H:%M:%S} UTC, "
            f"{duration((now - since).total_seconds())} ago"
        )


def _timely(found: list[SourceHealth], schedule: Schedule | None) -> str:
    if not found:
        return "The table reflects all changes of its sources."
    names = ", ".join(each.source for each in found)
    if schedule is None:
        return f"Changes of {names} are pending; the table is refreshed only on demand."
    return f"Changes of {names} are pending, within the schedule."


STATE = StreamTableCheck(
    "state",
    "state_is_whole",
    "Hidden columns, keys, frontier and intermediate tables are consistent.",
    check_state,
)
COLUMNS = StreamTableCheck(
    "columns",
    "columns_are_as_defined",
    "The columns of the table and of its sources match the definition.",
    check_columns,
    severity=WARN,
    unanswered=ERROR,
)
FRESHNESS = StreamTableCheck(
    "freshness",
    "reflects_its_sources",
    "Changes of the sources reach the table within its schedule; no refresh fails.",
    check_freshness,
    severity=WARN,
    from_logs=True,
)


def check_history(given: Evaluation) -> dg.AssetCheckResult:
    """Do the sources of a table keep what its next refresh needs?

    It fails if that history may be lost soon, or is lost. The next refresh is still exact, but has
    to run the whole query.
    """
    found = given.lake.retention.of(given.examined.name)
    said = [each for health in found if (each := health.warning(given.settings.warn_before))]
    return dg.AssetCheckResult(
        passed=not said,
        severity=given.severity,
        description="; ".join(said) or "The sources keep everything that the next refresh needs.",
        metadata={keys.HISTORY: dg.MetadataValue.table([*map(_row, found)])} if found else {},
    )


def _row(health: SourceHealth) -> dg.TableRecord:
    behind, left = health.bytes_behind, health.seconds_left
    return dg.TableRecord(
        {
            "source": health.source,
            "reflects": health.frontier,
            "newest": "missing" if health.newest is None else health.newest,
            "bytes behind": "unknown" if behind is None else str(behind),
            "read by": health.capture,
            "hours left": "all" if left is None else f"{left / 3600:.1f}",
            "lost": health.lost,
        }
    )


RETENTION = StreamTableCheck(
    "retention",
    "history_is_kept",
    "The sources keep what the next differential refresh needs.",
    check_history,
    severity=WARN,
    from_logs=True,
)


_LOOK_BACK = 100
"""The number of commits in which a refresh that changed rows is looked for."""


def check_full(given: Evaluation) -> dg.AssetCheckResult:
    """Did the last refresh run the whole query, though nobody asked for it?

    It passes again after the next refresh that computes a change. A table that was never refreshed
    passes.
    """
    name = given.examined.name
    past = given.lake.monitor.history(name, _LOOK_BACK) if given.lake.version(name) else []
    last = next((each for each in past if each.action != Action.NO_DATA), None)
    reason = last.full_reason if last is not None else None
    if last is None or reason is None or reason.is_deliberate:
        said = "The last refresh did not run the whole query, or by request."
        return dg.AssetCheckResult(passed=True, description=said)
    return dg.AssetCheckResult(
        passed=False,
        severity=given.severity,
        description=f"The refresh to version {last.version} ran the whole query: {last.reason}",
        metadata={keys.FULL_REASON: str(reason)},
    )


FULL = StreamTableCheck(
    "full",
    "was_not_full",
    "The last refresh did not run the whole query, or somebody asked for it.",
    check_full,
    severity=WARN,
    from_logs=True,
    applies=lambda table: table.on_full is not OnFull.ALLOW,
)


def check_equality(given: Evaluation) -> dg.AssetCheckResult:
    """Does a table, or a sample of it, equal its query?

    Raises:
        StreamTablesError: It cannot be compared: it was never refreshed, or a version that it
            reflects is gone.
    """
    found = given.lake.check(given.examined.table, sample=given.settings.sample)
    metadata: dict[str, Any] = {
        keys.MISSING: found.missing,
        keys.UNEXPECTED: found.unexpected,
        keys.VERSION: found.version,
        keys.FRONTIER: dg.MetadataValue.json(dict(found.frontier)),
        keys.SECONDS: float(found.seconds),
    }
    if found.part is not None:
        metadata |= {keys.PART: found.part.fraction, keys.SEED: found.part.seed}
    if found.sample:
        metadata[keys.SAMPLE] = keys.rows_table(found.sample, first="__difference")
    said = _verdict(found)
    if found.functions and not found.equal:
        said += f" The query calls {', '.join(found.functions)}: is each deterministic?"
    if found.part is not None:
        which = f"{', '.join(found.part.columns)}, seed {found.part.seed}"
        said += f" Compared a sample of {share(found.part.fraction)} of the rows, by {which}."
    return dg.AssetCheckResult(
        passed=found.equal,
        severity=given.severity,
        description=said,
        metadata=metadata,
    )


def _verdict(found: Comparison) -> str:
    if found.equal:
        return "The table equals its recomputation."
    if found.columns:
        return f"The columns differ: {found.columns}."
    return f"Rows missing: {found.missing:,}, unexpected: {found.unexpected:,}."


EQUALITY = StreamTableCheck(
    "equality",
    "equals_recomputation",
    "The table equals its query, recomputed at the source versions that it reflects.",
    check_equality,
)


KINDS = (EQUALITY, STATE, COLUMNS, FRESHNESS, RETENTION, FULL)


def build_table_checks(
    *,
    tables: Tables,
    kinds: Collection[str] | None = None,
    settings: CheckSettings | None = None,
    severity: dg.AssetCheckSeverity | None = None,
    name: str = RESOURCE_KEY,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> list[dg.AssetChecksDefinition]:
    """The checks of all stream tables that are not broken: one op for each kind.

    No check blocks a refresh. Each fails also if it cannot be evaluated, with the error.

    Args:
        tables: The stream tables.
        kinds: Some of ``equality``, ``state``, ``columns``, ``freshness``, ``retention`` and
            ``full``; None for all.
        settings: How they are evaluated. Their schedules are for `build_check_schedule`.
        severity: The severity of a failure; None for that of each kind. Freshness has its own.
        name: The prefix of the names of the ops.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_catalog`.

    Raises:
        InvalidDefinition: A kind does not exist.
    """
    known = {kind.kind: kind for kind in KINDS}
    if unknown := sorted({*(kinds or ())} - known.keys()):
        raise InvalidDefinition(
            f'there is no kind of check "{unknown[0]}"', fix=f"choose of {', '.join(known)}"
        )
    built, settings = build_catalog(tables, **catalog), settings or CheckSettings()
    if not built.sound:
        return []
    return [
        kind.op(settings, name, resource_key, catalog=built, severity=severity)
        for kind in KINDS
        if kinds is None or kind.kind in kinds
    ]


def build_check_schedule(
    check_name: str,
    cron: str,
    *,
    tables: Tables,
    name: str | None = None,
    timezone: str = "UTC",
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
    **catalog: Any,
) -> dg.ScheduleDefinition:
    """A schedule that runs one kind of check for all the tables.

    Args:
        check_name: The name of the check, such as ``equals_recomputation``.
        cron: A cron expression of five fields.
        tables: The stream tables.
        name: The name of the schedule.
        timezone: The time zone of the cron expression.
        default_status: Whether the schedule is on until a user switches it in the UI.
        executor: The executor of the runs; None for that of the code location.
        catalog: Arguments of `build_catalog`.
    """
    built = build_catalog(tables, **catalog)
    found = [entry for kind in KINDS if kind.name == check_name for entry in kind.entries(built)]
    return check_schedule(
        check_name,
        [entry.key for entry in found or built.sound],
        cron,
        of="stream table",
        name=name or f"streamtables_{check_name}_schedule",
        timezone=timezone,
        status=default_status,
        executor=executor,
    )
