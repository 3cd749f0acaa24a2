"""One run of a change asset: its changes → its function → its slot, in this order."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.changes.changes import Changes
from dagster_streamtables.changes.window import Feed, next_window
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, legible
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION
from dagster_streamtables.orchestration.changes import feed_metadata
from dagster_streamtables.orchestration.instance.run_process import name_process
from dagster_streamtables.runtime.errors.verdict import may_pass
from dagster_streamtables.runtime.model.report import Action

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


def run_once(
    context: dg.AssetExecutionContext,
    lake: Lake,
    spec: dg.AssetSpec,
    feed: Feed,
    call: Callable[[Changes], Any],
    stored_token: Callable[[], str | None] | None,
) -> dg.MaterializeResult[Any]:
    """Give the function what changed, and acknowledge it once the function has returned.

    Raises:
        dg.Failure: The changes cannot be read, or not be acknowledged, with what, why and fix.
    """
    name_process(context)
    token = None if stored_token is None else stored_token()
    try:
        with next_window(lake, feed) as window:
            changes = window.changes
            changes.resume_after(token)
            found = _given(changes, call) if len(changes) else dg.MaterializeResult()
            seen = feed_metadata.of_changes(changes)
            window.ack()
    except StreamTablesError as error:
        context.log.debug("".join(traceback.format_exception(error)))
        raise keys.failure(
            error.about(spec.key.to_user_string()), allow_retries=may_pass(error)
        ) from None
    return _recorded(context, lake, spec, feed, found, seen)


def _given(changes: Changes, call: Callable[[Changes], Any]) -> dg.MaterializeResult[Any]:
    returned = call(changes)
    if returned is None:
        return dg.MaterializeResult()
    if isinstance(returned, dg.MaterializeResult):
        return returned
    if isinstance(returned, Mapping):
        return dg.MaterializeResult(metadata=returned)
    raise InvalidDefinition(
        f"the function of a change asset returned a value of the type {type(returned).__name__}",
        why="its slot stays where it was, since what was returned would be lost",
        fix="return a MaterializeResult, a dictionary of metadata, or nothing",
    )


def _recorded(
    context: dg.AssetExecutionContext,
    lake: Lake,
    spec: dg.AssetSpec,
    feed: Feed,
    found: dg.MaterializeResult[Any],
    seen: Mapping[str, Any],
) -> dg.MaterializeResult[Any]:
    moved = bool(seen[keys.ROWS_IN])
    action = {} if moved else {keys.ACTION: str(Action.NO_DATA)}
    version = found.data_version or _version(context, spec.key, seen, moved=moved)
    return found._replace(
        asset_key=spec.key,
        data_version=version,
        metadata={**action, **seen, **_lag(context, lake, feed), **(found.metadata or {})},
    )


def _version(
    context: dg.AssetExecutionContext, key: dg.AssetKey, seen: Mapping[str, Any], *, moved: bool
) -> dg.DataVersion:
    """The last timestamp that moved rows: an unchanged data version starts nothing downstream."""
    event = context.instance.get_latest_materialization_event(key)
    before = event.asset_materialization if event is not None else None
    known = None if before is None else (before.tags or {}).get(DATA_VERSION)
    return dg.DataVersion(str(seen[feed_metadata.TO]) if moved or known is None else known)


def _lag(context: dg.AssetExecutionContext, lake: Lake, feed: Feed) -> dict[str, Any]:
    try:
        return feed_metadata.of_slot(lake.retention.slot(feed.slot))
    except Exception as error:  # the slot has moved, so the run must not fail
        context.log.warning(f"the lag of {feed.slot} is not recorded: {legible(str(error))}")
        return {}
