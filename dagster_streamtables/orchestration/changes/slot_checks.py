"""Checks of change assets: is what their slots hold still there, and how far are they behind?

They read only logs and start no Spark.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import duration
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.changes import feed_metadata
from dagster_streamtables.orchestration.changes.feed_metadata import follows_of
from dagster_streamtables.orchestration.checks.check_kind import FactoryCheck, error_result
from dagster_streamtables.orchestration.checks.check_settings import MAX_LAG
from dagster_streamtables.runtime.observe.events import WARN_BEFORE

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.observe.slot_health import SlotHealth

PINNED = "history_pinned"
LAG = "slot_lag"

Evaluate = Callable[["SlotHealth"], tuple[str, str]]
"""A slot → why the check fails, which is empty if it passes, and what is said if it does."""


def build_history_pinned_checks(
    *,
    assets: Sequence[dg.AssetsDefinition],
    name: str = "streamtables_pinned",
    warn_before: timedelta = WARN_BEFORE,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    resource_key: str = RESOURCE_KEY,
) -> dg.AssetChecksDefinition:
    """One op with a check for each change asset: its next run can read what it needs.

    It fails if the slot was let go, or soon is, or if a foreign VACUUM or a clean-up of the log
    removed what it holds.

    Args:
        assets: What `change_asset` made; other assets are ignored.
        name: The name of the op.
        warn_before: How long before its deadline an unused slot fails the check.
        severity: The severity of a failure.
        resource_key: The key of the `StreamTablesResource`.
    """

    def evaluate(health: "SlotHealth") -> tuple[str, str]:
        return health.warning(warn_before), "The slot holds everything that the next run needs."

    description = "The slot is active, and what it holds can be read."
    return _checks(name, PINNED, description, evaluate, assets, severity, resource_key)


def build_slot_lag_checks(
    *,
    assets: Sequence[dg.AssetsDefinition],
    name: str = "streamtables_slot_lag",
    max_lag: timedelta = MAX_LAG,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
    resource_key: str = RESOURCE_KEY,
) -> dg.AssetChecksDefinition:
    """One op with a check for each change asset: it has processed what changed up to `max_lag` ago.

    Args:
        assets: What `change_asset` made; other assets are ignored.
        name: The name of the op.
        max_lag: The age of a change that is not processed from which on the check fails.
        severity: The severity of a failure.
        resource_key: The key of the `StreamTablesResource`.
    """

    def evaluate(health: "SlotHealth") -> tuple[str, str]:
        late = [
            f"changes of {each.source} have waited for {duration(each.seconds_behind)}"
            for each in health.sources
            if (each.seconds_behind or 0.0) > max_lag.total_seconds()
        ]
        return "; ".join(late), "The slot is no further behind than it may be."

    description = f"No change has waited for longer than {max_lag}."
    return _checks(name, LAG, description, evaluate, assets, severity, resource_key)


def _checks(
    name: str,
    check_name: str,
    description: str,
    evaluate: Evaluate,
    assets: Sequence[dg.AssetsDefinition],
    severity: dg.AssetCheckSeverity,
    resource_key: str,
) -> dg.AssetChecksDefinition:
    slots = {key: each.slot for key, each in follows_of(assets).items()}

    @dg.multi_asset_check(
        name=name,
        specs=[dg.AssetCheckSpec(check_name, asset=key, description=description) for key in slots],
        can_subset=True,
        required_resource_keys={resource_key},
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        lake = getattr(context.resources, resource_key).logs()
        selected = {each.asset_key for each in context.selected_asset_check_keys}
        for key, slot in slots.items():
            if key in selected:
                yield _result(lake, key, slot, check_name, evaluate, severity)

    return check


def _result(
    lake: "Lake",
    key: dg.AssetKey,
    slot: str,
    check_name: str,
    evaluate: Evaluate,
    severity: dg.AssetCheckSeverity,
) -> dg.AssetCheckResult:
    try:
        if lake.slots.find(slot) is None:
            return _check_result(key, check_name, severity, "", "The asset has never run.", {})
        health = lake.retention.slot(slot)
        wrong, right = evaluate(health)
    except StreamTablesError as error:
        return error_result(key, check_name, severity, error)
    return _check_result(key, check_name, severity, wrong, right, feed_metadata.of_slot(health))


def _check_result(
    key: dg.AssetKey,
    check_name: str,
    severity: dg.AssetCheckSeverity,
    wrong: str,
    right: str,
    metadata: Mapping[str, Any],
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not wrong, asset_key=key, check_name=check_name, severity=severity,
        description=wrong or right, metadata=metadata,
    )  # fmt: skip


SLOT_KINDS = (
    FactoryCheck("pinned", PINNED, build_history_pinned_checks, ("warn_before",)),
    FactoryCheck("lag", LAG, build_slot_lag_checks, ("max_lag",)),
)
"""The kinds of checks that each change asset has."""
