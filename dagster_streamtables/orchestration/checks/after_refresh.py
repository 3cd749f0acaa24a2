"""What a run tells of the checks of a table that it has refreshed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.checks import equality_check, quick_checks, state_checks
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.instance.standing_checks import carried
from dagster_streamtables.runtime.model.report import Action

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_ALL = (equality_check.CHECK_NAME, state_checks.STATE, state_checks.SCHEMA, *quick_checks.NAMES)


def tell_checks(
    context: dg.AssetExecutionContext,
    lake: Lake,
    key: dg.AssetKey,
    made: dg.MaterializeResult,
    quick: QuickChecks | None = None,
) -> None:
    """Evaluate the quick checks of a table, and tell the last results of the others again, or the
    materialization would take all of them from Dagster's pages.

    Args:
        context: Of the step.
        lake: The tables.
        key: Of the asset.
        made: Its materialization, which was recorded.
        quick: The quick checks; without them, their last results are told again, too.
    """
    try:
        evaluated = quick.of(lake, key, datetime.now(UTC)) if quick is not None else []
        names = set(_ALL) - {each.check_name for each in evaluated}
        others = [dg.AssetCheckKey(key, name) for name in sorted(names)]
        changed = (made.metadata or {}).get(metadata.ACTION) != str(Action.NO_DATA)
        for each in [*evaluated, *carried(context.instance, others, changed=changed)]:
            # Its type does not say so, and Dagster records this event like the others.
            context.log_event(each)  # pyright: ignore[reportArgumentType]
    except Exception as error:  # the refresh is committed; only what is told of it is incomplete
        context.log.warning(f"the checks of {key.to_user_string()} are not told: {error}")
