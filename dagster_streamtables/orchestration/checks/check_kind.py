"""`CheckKind`: one check, declared once: its op, its schedule, and how it is evaluated.

`CheckSettings`: when the checks of a code location run, and how.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import dagster as dg

from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.schedule import Cron as Schedule, parse_schedule
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog, CatalogEntry
from dagster_streamtables.runtime.checks.comparison import Sample
from dagster_streamtables.runtime.model.stream_table import StreamTable, check_zone
from dagster_streamtables.runtime.observe.monitor import WARN_BEFORE
from dagster_streamtables.setting import Normalizer, Predicate, Range, normalize_fields

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


def _is_cron(text: str) -> bool:
    """Whether Dagster accepts the text as a cron expression, so without seconds."""
    try:
        found = parse_schedule(text, min_schedule_seconds=0)
    except InvalidDefinition:
        return False
    return isinstance(found, Schedule) and len(text.split()) in (1, 5)


MAX_LAG = timedelta(hours=1)
Cron = Annotated[str, Predicate(_is_cron, "a cron expression of five fields")]
Zone = Annotated[str, Normalizer(check_zone)]


@dataclass(frozen=True)
class CheckSettings:
    """When checks run, and how. The schedule of each is a cron expression of five fields, or None:
    then it runs only when launched by hand."""

    equality: Cron | None = "0 3 * * *"
    """When to compare tables with their queries, which costs a run of the query, for a sample."""
    state: Cron | None = "30 * * * *"
    """When to check the state of stored tables, which costs a scan of each."""
    columns: Cron | None = "15 * * * *"
    """When to check the columns of tables and sources."""
    quick: Annotated[timedelta, Range(0)] | None = timedelta(minutes=5)
    """How often the sensor evaluates freshness and retention, which read only logs. Every refresh
    also evaluates them. `None`, in YAML `null`, turns this off."""
    freshness: Cron | None = None
    """When to check freshness in a separate run."""
    retention: Cron | None = None
    """When to check retention in a separate run."""
    full: Cron | None = None
    """When to check in a separate run that the last refresh was not in full."""
    pinned: Cron | None = "*/15 * * * *"
    """When to check that the slots of change assets hold what their next runs need."""
    lag: Cron | None = "*/15 * * * *"
    """When to check how far the slots of change assets are behind."""
    origin: Cron | None = "0 4 * * *"
    """When to compare replicated tables with their origin, which reads the origin as a whole."""
    replication: Cron | None = "*/15 * * * *"
    """When to check that the slots of replications are there, and how far they are behind."""
    timezone: Zone = "UTC"
    """The time zone of the cron expressions, such as `Europe/Berlin`."""
    enabled: bool = True
    """Whether the schedules are on until a user switches them in the UI."""
    sample: Sample | None = 0.05
    """The fraction of rows that the equality check compares, such as 0.01. `None`, in YAML `null`,
    means all."""
    grace: Annotated[timedelta, Range(0)] = timedelta()
    """The time that a refresh may take, which the freshness check adds to the schedule."""
    warn_before: Annotated[timedelta, Range(0)] = WARN_BEFORE
    """How long before history may be lost, or a slot dropped, its check fails."""

    max_lag: Annotated[timedelta, Range(0)] = MAX_LAG
    """The age of a change from which on the lag check of a change asset, or of a replicated table,
    fails."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def status(self) -> dg.DefaultScheduleStatus:
        """The default status of the schedules."""
        on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
        return on if self.enabled else off


ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@dataclass(frozen=True)
class Evaluation:
    """What the check of one stream table is evaluated with."""

    lake: "Lake"
    """Without Spark for a kind that is evaluated from logs."""
    examined: TableAnalysis
    settings: CheckSettings
    now: datetime
    severity: dg.AssetCheckSeverity
    """The severity of a failure."""


@dataclass(frozen=True)
class CheckKind:
    """A check that each stream table, change asset or replicated table has."""

    kind: str
    """The field of `CheckSettings` with its schedule; part of the names of its op and schedule."""
    name: str
    """The name that Dagster shows."""

    def cron(self, settings: CheckSettings) -> str | None:
        """When to run it; None if only by hand."""
        return getattr(settings, self.kind)


@dataclass(frozen=True)
class FactoryCheck(CheckKind):
    """A check whose op its own function builds."""

    build: Callable[..., dg.AssetChecksDefinition]
    takes: tuple[str, ...] = ()
    """The fields of `CheckSettings` that `build` takes."""

    def op(
        self, settings: CheckSettings, name: str, resource_key: str, **about: object
    ) -> dg.AssetChecksDefinition:
        """Its op for a code location; `name` is the prefix of its name."""
        taken = {each: getattr(settings, each) for each in self.takes}
        return self.build(name=f"{name}_{self.kind}", resource_key=resource_key, **taken, **about)


@dataclass(frozen=True)
class StreamTableCheck(CheckKind):
    """A check of each stream table."""

    description: str
    evaluate: Callable[[Evaluation], dg.AssetCheckResult]
    """The result for one table. A `StreamTablesError` that it raises fails the check."""
    severity: dg.AssetCheckSeverity = ERROR
    """The severity of a failure, unless the caller chooses another."""
    unanswered: dg.AssetCheckSeverity | None = None
    """The severity of an error that it raises; None for the severity of a failure."""
    from_logs: bool = False
    """Whether it reads nothing but logs. Such a check needs no Spark, so each refresh and the
    sensor evaluate it."""
    applies: Callable[[StreamTable], bool] = lambda _: True
    """Which tables have it."""

    def entries(self, catalog: Catalog) -> list[CatalogEntry]:
        """The tables that have it and are not broken."""
        return [entry for entry in catalog.sound if self.applies(entry.examined.table)]

    def op(
        self,
        settings: CheckSettings,
        name: str,
        resource_key: str,
        *,
        catalog: Catalog,
        severity: dg.AssetCheckSeverity | None = None,
    ) -> dg.AssetChecksDefinition:
        """One op with the checks of all tables that are not broken."""
        entries = {entry.key: entry for entry in self.entries(catalog)}

        def evaluate(
            lake: "Lake", selected: Sequence[dg.AssetKey]
        ) -> Iterator[dg.AssetCheckResult]:
            for key in selected:
                yield self.result(lake, entries[key], settings, datetime.now(UTC), severity)

        return check_op(
            f"{name}_{self.kind}",
            self.name,
            self.description,
            entries,
            evaluate,
            resource_key,
            from_logs=self.from_logs,
        )

    def result(
        self,
        lake: "Lake",
        entry: CatalogEntry,
        settings: CheckSettings,
        now: datetime,
        severity: dg.AssetCheckSeverity | None = None,
    ) -> dg.AssetCheckResult:
        """The result for one table; an error of this package is a failure of the check."""
        severity = severity or self.severity
        try:
            found = self.evaluate(Evaluation(lake, entry.examined, settings, now, severity))
        except StreamTablesError as error:
            return error_result(entry.key, self.name, self.unanswered or severity, error)
        return found._replace(asset_key=entry.key, check_name=self.name)


def check_op(
    name: str,
    check_name: str,
    description: str,
    assets: Iterable[dg.AssetKey],
    evaluate: Callable[["Lake", Sequence[dg.AssetKey]], Iterator[dg.AssetCheckResult]],
    resource_key: str,
    *,
    from_logs: bool = False,
) -> dg.AssetChecksDefinition:
    """One op with a check of each asset; `evaluate` yields the results of those that are selected,
    which it gets in the order of `assets`, with a lake that has no Spark if it reads `from_logs`
    only."""
    keys = list(assets)

    @dg.multi_asset_check(
        name=name,
        specs=[dg.AssetCheckSpec(check_name, asset=key, description=description) for key in keys],
        can_subset=True,
        required_resource_keys={resource_key},
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        selected = {each.asset_key for each in context.selected_asset_check_keys}
        resource = getattr(context.resources, resource_key)
        lake = resource.logs() if from_logs else resource.lake()
        yield from evaluate(lake, [key for key in keys if key in selected])

    return check


def check_schedules(
    kinds: Iterable[CheckKind],
    assets: Collection[dg.AssetKey],
    of: str,
    settings: CheckSettings,
    executor: dg.ExecutorDefinition | None,
    name: str,
) -> Iterator[dg.ScheduleDefinition]:
    """The schedules on which kinds of checks run for assets; `of` names one asset. A kind without
    a cron expression runs only by hand."""
    for kind in kinds if assets else ():
        if (cron := kind.cron(settings)) is not None:
            yield check_schedule(
                kind.name,
                assets,
                cron,
                of=of,
                name=f"{name}_{kind.kind}_schedule",
                timezone=settings.timezone,
                status=settings.status,
                executor=executor,
            )


def check_schedule(
    check_name: str,
    assets: Collection[dg.AssetKey],
    cron: str,
    *,
    of: str,
    name: str,
    timezone: str,
    status: dg.DefaultScheduleStatus,
    executor: dg.ExecutorDefinition | None,
) -> dg.ScheduleDefinition:
    """A schedule that runs a check of some assets; `of` names one of them."""
    checks = [dg.AssetCheckKey(asset, check_name) for asset in assets]
    job = dg.define_asset_job(
        f"{name.removesuffix('_schedule')}_check",
        dg.AssetSelection.checks(*checks),
        executor_def=executor,
    )
    return dg.ScheduleDefinition(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=status,
        description=f"Runs the check {check_name} of every {of}.",
    )


def error_result(
    key: dg.AssetKey,
    check_name: str,
    severity: dg.AssetCheckSeverity,
    error: StreamTablesError,
) -> dg.AssetCheckResult:
    """The result of a check that could not be evaluated: it fails with the error."""
    metadata = {keys.PROBLEM: keys.problem_metadata(error)}
    return check_result(key, check_name, severity, str(error), passed=False, metadata=metadata)


def check_result(
    key: dg.AssetKey,
    check_name: str,
    severity: dg.AssetCheckSeverity,
    said: str,
    *,
    passed: bool,
    metadata: Mapping[str, Any] | None = None,
) -> dg.AssetCheckResult:
    """The result of a check; `said` is its description."""
    return dg.AssetCheckResult(
        passed=passed, asset_key=key, check_name=check_name, severity=severity,
        description=said, metadata=metadata or {},
    )  # fmt: skip
