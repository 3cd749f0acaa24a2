"""`CheckKind`: one check, declared once: its op, its schedule, and how it is evaluated."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.declare.analyze import TableAnalysis
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.lake_provider import LakeProvider
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

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

    def schedules(
        self,
        assets: Collection[dg.AssetKey],
        of: str,
        settings: CheckSettings,
        executor: dg.ExecutorDefinition | None,
        name: str,
    ) -> Iterator[dg.ScheduleDefinition]:
        """The schedule on which it runs for assets, unless that is only by hand; `of` names one."""
        cron = self.cron(settings)
        if cron is None or not assets:
            return
        yield check_schedule(
            self.name,
            assets,
            cron,
            of=of,
            name=f"{name}_{self.kind}_schedule",
            timezone=settings.timezone,
            status=settings.status,
            executor=executor,
        )


@dataclass(frozen=True)
class FactoryCheck(CheckKind):
    """A check whose op is built by a function of its own."""

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
    """The severity of an error that it raises; None for that of a failure."""
    from_logs: bool = False
    """Whether it reads nothing but logs. Such a check needs no Spark, so each refresh and the
    sensor evaluate it."""

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
        entries = {entry.key: entry for entry in catalog.sound}

        @dg.multi_asset_check(
            name=f"{name}_{self.kind}",
            specs=[
                dg.AssetCheckSpec(self.name, asset=key, description=self.description)
                for key in entries
            ],
            can_subset=True,
            required_resource_keys={resource_key},
        )
        def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
            provider: LakeProvider = getattr(context.resources, resource_key)
            selected = {each.asset_key for each in context.selected_asset_check_keys}
            for key, entry in entries.items():
                if key in selected:
                    lake = provider.logs() if self.from_logs else provider.lake()
                    yield self.result(lake, entry, settings, datetime.now(UTC), severity)

        return check

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
    return dg.AssetCheckResult(
        passed=False,
        asset_key=key,
        check_name=check_name,
        severity=severity,
        description=str(error),
        metadata={keys.PROBLEM: keys.problem_metadata(error)},
    )
