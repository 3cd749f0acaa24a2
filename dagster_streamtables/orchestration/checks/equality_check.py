"""The equality check: does a stream table hold what its query gives on the versions it reflects?

The recomputation is plain Spark running the text as the user wrote it, so it shares nothing with
the compiled change but the versions. It costs a full run of the query, and so it is a check of its
own, on a schedule of its own, and never in the way of a refresh.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Tables, build_catalog
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY, LakeProvider
from dagster_streamtables.orchestration.catalog.metadata import read_definition

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Comparison

CHECK_NAME = "equals_recomputation"


def build_equality_checks(
    *,
    tables: Tables,
    name: str = "streamtables_equality",
    sample: float | None = None,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """A check for each stream table, in one op: contents = query, at the versions it reflects.

    A check never blocks a refresh. It fails with the differing rows, and also where a table cannot
    be compared because it was never refreshed or a version it reflects is gone.

    Args:
        tables: The stream tables.
        name: The name of the op.
        sample: What part of the rows each check compares, as 0.01, another part each time; None for
            all. Of groups, the query is run for the groups of the part alone.
        severity: Of a difference.
        catalog: As for `build_catalog`; and `resource_key`, that of the `StreamTablesResource`.
    """

    def evaluate(provider: LakeProvider, spec: dg.AssetSpec) -> dg.AssetCheckResult:
        try:
            found = provider.lake().check(read_definition(spec.metadata), sample=sample)
        except StreamTablesError as error:
            return not_answered(spec.key, CHECK_NAME, severity, error)
        return _result(spec.key, severity, found)

    description = "The table holds what its query gives at the versions it reflects."
    return checks_of_tables(name, CHECK_NAME, description, evaluate, tables=tables, **catalog)


def checks_of_tables(
    name: str,
    check_name: str,
    description: str,
    evaluate: Callable[[LakeProvider, dg.AssetSpec], dg.AssetCheckResult],
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """The same check for each stream table that is not broken, in one op."""
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
    """A schedule that runs one kind of check for all the tables, and nothing else.

    Args:
        check_name: The name of the check, such as ``equals_recomputation``.
        cron: When; five fields.
        tables: The stream tables.
        name: The name of the schedule.
        timezone: Where the hours are.
        default_status: Whether it is on before anybody touches its switch.
        executor: Of the runs; None takes the code location's.
        catalog: As for `build_catalog`.
    """
    name = name or f"streamtables_{check_name}_schedule"
    keys_ = [dg.AssetCheckKey(e.key, check_name) for e in build_catalog(tables, **catalog).sound]
    job = dg.define_asset_job(
        f"{name}_run", dg.AssetSelection.checks(*keys_), executor_def=executor
    )
    return dg.ScheduleDefinition(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=default_status,
        description=f"Runs the check {check_name} of every stream table.",
    )


def _result(
    key: dg.AssetKey, severity: dg.AssetCheckSeverity, found: "Comparison"
) -> dg.AssetCheckResult:
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
    said = (
        "The table equals its recomputation."
        if found.equal
        else f"{found.missing} rows are missing and {found.unexpected} should not be there."
    )
    if found.part is not None:
        which = f"{', '.join(found.part.columns)}, seed {found.part.seed}"
        said += f" Compared was a part of {found.part.fraction:.2%}, by {which}."
    return dg.AssetCheckResult(
        passed=found.equal,
        asset_key=key,
        check_name=CHECK_NAME,
        severity=severity,
        description=said,
        metadata=metadata,
    )


def not_answered(
    key: dg.AssetKey,
    check_name: str,
    severity: dg.AssetCheckSeverity,
    error: StreamTablesError,
) -> dg.AssetCheckResult:
    """A check that could not be made, which is no better than one that fails."""
    return dg.AssetCheckResult(
        passed=False,
        asset_key=key,
        check_name=check_name,
        severity=severity,
        description=str(error),
        metadata={keys.PROBLEM: keys.problem_metadata(error)},
    )
