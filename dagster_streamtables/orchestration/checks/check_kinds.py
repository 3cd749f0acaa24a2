"""The kinds of checks, each declared once: its op, its schedule, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.declare.analyze import Examined
from dagster_streamtables.orchestration.checks import equality_check, retention_check, state_checks
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings
from dagster_streamtables.orchestration.checks.equality_check import (
    build_equality_checks,
    check_schedule,
    equals_recomputation,
)
from dagster_streamtables.orchestration.checks.retention_check import (
    build_retention_checks,
    history_is_kept,
)
from dagster_streamtables.orchestration.checks.state_checks import (
    WARN,
    build_freshness_checks,
    build_schema_checks,
    build_state_checks,
    columns_are_as_defined,
    reflects_its_sources,
    state_is_whole,
)

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

Evaluate = Callable[["Lake", Examined, datetime, CheckSettings], dg.AssetCheckResult]


@dataclass(frozen=True)
class CheckKind:
    """One check that each stream table has, or each change asset."""

    kind: str
    """The field of `CheckSettings` with its schedule; part of the names of its op and schedule."""
    name: str
    """The name that Dagster shows."""
    build: Callable[..., dg.AssetChecksDefinition]
    """Makes its op."""
    takes: tuple[str, ...] = ()
    """The fields of `CheckSettings` that `build` takes."""
    evaluate: Evaluate | None = None
    """Evaluates it for a table without a run of its own; None if that is not possible."""
    from_logs: bool = False
    """Whether `evaluate` reads nothing but logs."""

    def cron(self, settings: CheckSettings) -> str | None:
        """When to run it; None if only by hand."""
        return getattr(settings, self.kind)

    def op(self, settings: CheckSettings, name: str, **about: object) -> dg.AssetChecksDefinition:
        """Its op for the tables of a code location; `name` is the prefix of its name."""
        taken = {each: getattr(settings, each) for each in self.takes}
        return self.build(name=f"{name}_{self.kind}", **taken, **about)

    def schedules(
        self,
        keys: Collection[dg.AssetKey],
        of: str,
        settings: CheckSettings,
        executor: dg.ExecutorDefinition | None,
        name: str,
    ) -> Iterator[dg.ScheduleDefinition]:
        """The schedule on which it runs for assets, unless that is only by hand; `of` names one."""
        cron = self.cron(settings)
        if cron is None or not keys:
            return
        yield check_schedule(
            self.name,
            keys,
            cron,
            of=of,
            name=f"{name}_{self.kind}_schedule",
            timezone=settings.timezone,
            status=settings.status,
            executor=executor,
        )


def _equality(
    lake: Lake, examined: Examined, now: datetime, settings: CheckSettings
) -> dg.AssetCheckResult:
    return equals_recomputation(lake, examined.table, settings.sample)


def _state(
    lake: Lake, examined: Examined, now: datetime, settings: CheckSettings
) -> dg.AssetCheckResult:
    return state_is_whole(lake, examined.table)


def _columns(
    lake: Lake, examined: Examined, now: datetime, settings: CheckSettings
) -> dg.AssetCheckResult:
    return columns_are_as_defined(lake, examined.table)


def _freshness(
    lake: Lake, examined: Examined, now: datetime, settings: CheckSettings
) -> dg.AssetCheckResult:
    return reflects_its_sources(lake, examined.table, examined.schedule, now, settings.grace)


def _retention(
    lake: Lake, examined: Examined, now: datetime, settings: CheckSettings
) -> dg.AssetCheckResult:
    return history_is_kept(lake, examined.table, WARN, settings.warn_before)


KINDS = (
    CheckKind("equality", equality_check.CHECK_NAME, build_equality_checks, ("sample",), _equality),
    CheckKind("state", state_checks.STATE, build_state_checks, (), _state),
    CheckKind("columns", state_checks.SCHEMA, build_schema_checks, (), _columns),
    CheckKind(
        "freshness",
        state_checks.FRESHNESS,
        build_freshness_checks,
        ("grace",),
        _freshness,
        from_logs=True,
    ),
    CheckKind(
        "retention",
        retention_check.CHECK_NAME,
        build_retention_checks,
        ("warn_before",),
        _retention,
        from_logs=True,
    ),
)
