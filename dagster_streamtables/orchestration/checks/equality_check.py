"""The equality check: does a stream table equal its query at the versions that it reflects?

Spark recomputes the query as the user wrote it, so the check shares only the versions with the
compiled change. It costs a full run of the query, so it has its own schedule and never blocks a
refresh.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import share
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Tables, build_catalog
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY, LakeProvider
from dagster_streamtables.orchestration.catalog.metadata import read_definition
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Comparison, Lake

CHECK_NAME = "equals_recomputation"


def build_equality_checks(
    *,
    tables: Tables,
    name: str = "streamtables_equality",
    sample: float | None = None,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """One op with a check for each stream table: it equals its query at the versions it reflects.

    The check never blocks a refresh. It fails with the rows that differ, and also if the table
    cannot be compared, because it was never refreshed or a version that it reflects is gone.

    Args:
        tables: The stream tables.
        name: The name of the op.
        sample: The fraction of rows to compare, such as 0.01, a different sample each time; None
            for all rows. If the query groups, it runs only for the groups in the sample.
        severity: The severity of a difference.
        catalog: Arguments of `build_catalog`, and `resource_key`, the key of the
            `StreamTablesResource`.
    """

    compare = partial(equals_recomputation, sample=sample, severity=severity)
    evaluate = evaluation(CHECK_NAME, severity, compare)
    description = "The table equals its query, recomputed at the source versions that it reflects."
    return checks_of_tables(name, CHECK_NAME, description, evaluate, tables=tables, **catalog)


def evaluation(
    check_name: str,
    severity: dg.AssetCheckSeverity,
    evaluate: Callable[["Lake", StreamTable], dg.AssetCheckResult],
    lake: Callable[[LakeProvider], "Lake"] = lambda provider: provider.lake(),
) -> Callable[[LakeProvider, dg.AssetSpec], dg.AssetCheckResult]:
    """The check of one asset. It fails with any `StreamTablesError`."""

    def of_asset(provider: LakeProvider, spec: dg.AssetSpec) -> dg.AssetCheckResult:
        try:
            found = evaluate(lake(provider), read_definition(spec.metadata))
        except StreamTablesError as error:
            return not_answered(spec.key, check_name, severity, error)
        return found._replace(asset_key=spec.key, check_name=check_name)

    return of_asset


def checks_of_tables(
    name: str,
    check_name: str,
    description: str,
    evaluate: Callable[[LakeProvider, dg.AssetSpec], dg.AssetCheckResult],
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """One op with the same check for each stream table that is not broken."""
    specs = {e.key: e.spec for e in build_catalog(**catalog).sound}

    @dg.multi_asset_check(
        name=name,
        specs=[dg.AssetCheckSpec(check_name, asset=key, description=description) for key in specs],
        can_subset=True,
        required_resource_keys={resource_key},
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        provider = getattr(context.resources, resource_key)
        selected = {each.asset_key for each in context.selected_asset_check_keys}
        for key, spec in specs.items():
            if key in selected:
                yield evaluate(provider, spec)

    return check


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
        default_status: Whether the schedule is on until somebody switches it in the UI.
        executor: The executor of the runs; None for that of the code location.
        catalog: Arguments of `build_catalog`.
    """
    return check_schedule(
        check_name,
        [entry.key for entry in build_catalog(tables, **catalog).sound],
        cron,
        of="stream table",
        name=name or f"streamtables_{check_name}_schedule",
        timezone=timezone,
        status=default_status,
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


def equals_recomputation(
    lake: "Lake",
    table: StreamTable,
    sample: float | None,
    *,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    """The check result: does a table, or a sample of it, equal its query?

    Raises:
        StreamTablesError: It cannot be compared.
    """
    found = lake.check(table, sample=sample)
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
        severity=severity,
        description=said,
        metadata=metadata,
    )


def _verdict(found: "Comparison") -> str:
    if found.equal:
        return "The table equals its recomputation."
    if found.columns:
        return f"The columns differ: {found.columns}."
    return f"Rows missing: {found.missing:,}, unexpected: {found.unexpected:,}."


def not_answered(
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
