"""The check results that a run reports for a table after refreshing it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.checks.table_checks import KINDS
from dagster_streamtables.orchestration.instance.standing_checks import (
    results_to_carry,
    without_record,
)
from dagster_streamtables.runtime.model.report import Action

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_FIRST_WITHIN = 60.0
"""The longest refresh, in seconds, after which checks are evaluated that scan or recompute."""


def tell_checks(
    context: dg.AssetExecutionContext,
    lake: Lake,
    key: dg.AssetKey,
    made: dg.MaterializeResult[Any],
    quick: QuickChecks | None = None,
) -> None:
    """Evaluate the quick checks of a table, and repeat the last results of its other checks.
    Without this, Dagster shows them all as "Not evaluated" after the materialization.

    A check that never had a result is evaluated now, if the refresh took less than a minute: a new
    table need not wait until night for its first comparison.

    Args:
        context: The context of the step.
        lake: The tables, with Spark.
        key: The key of the asset.
        made: Its recorded materialization.
        quick: The quick checks. Without them, their last results are repeated, too.
    """
    try:
        told = made.metadata or {}
        changed = told.get(metadata.ACTION) != str(Action.NO_DATA)
        found = check_results(context.instance, lake, key, quick, changed=changed)
        seconds = told.get(metadata.SECONDS)
        if quick is not None and isinstance(seconds, float) and seconds < _FIRST_WITHIN:
            told_of = {each.check_name for each in found}
            others = [each for each in _checks(key) if each.name not in told_of]
            names = {each.name for each in without_record(context.instance, others)}
            found += quick.others(lake, key, datetime.now(UTC), names)
        for each in found:
            # Dagster records this event like the others, although the type excludes it.
            context.log_event(each)  # pyright: ignore[reportArgumentType]
    except Exception as error:  # the refresh is committed, so it must not fail
        context.log.warning(f"the checks of {key.to_user_string()} are not reported: {error}")


def check_results(
    instance: dg.DagsterInstance,
    lake: Lake,
    key: dg.AssetKey,
    quick: QuickChecks | None,
    *,
    changed: bool,
) -> list[dg.AssetCheckEvaluation]:
    """The results to report with a materialization of a table.

    Args:
        instance: The Dagster instance, which stores the last results.
        lake: The tables.
        key: The key of the asset.
        quick: The quick checks, which are evaluated.
        changed: Whether its rows have changed since the last materialization.
    """
    evaluated = quick.of(lake, key, datetime.now(UTC)) if quick is not None else []
    names = {each.check_name for each in evaluated}
    others = [each for each in _checks(key) if each.name not in names]
    return [*evaluated, *results_to_carry(instance, others, changed=changed)]


def _checks(key: dg.AssetKey) -> list[dg.AssetCheckKey]:
    return [dg.AssetCheckKey(key, kind.name) for kind in sorted(KINDS, key=lambda each: each.name)]
