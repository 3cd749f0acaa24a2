"""The alert sensor, which notifies people of what happened to stream tables."""

# No `from __future__ import annotations`: Dagster reads the annotations of sensors at run time.
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.alerts.alert_events import beginning, look
from dagster_streamtables.orchestration.alerts.alerts import AlertState, Notify, log_alert
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    Tables,
    build_catalog,
)
from dagster_streamtables.orchestration.catalog.node_assets import (
    DeclaredReplications,
    build_replication_catalog,
)


class UndeliveredAlerts(StreamTablesError):
    """A function that should receive an alert raised an error; the alert is retried."""


def build_alert_sensor(
    *,
    tables: Tables,
    notify: Notify | Sequence[Notify] = log_alert,
    name: str = "streamtables_alerts",
    minimum_interval_seconds: int = 30,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
    resource_key: str = RESOURCE_KEY,
    replications: DeclaredReplications = (),
    **catalog: Any,
) -> dg.SensorDefinition:
    """A sensor that reports failed refreshes, late tables, failing checks, and recoveries; of
    replications also lost slots, errors in a row, and that one was disabled by an error.

    It calls a function once with each alert. If the function raises, the next tick retries that
    alert, other alerts are still delivered, and a tick that delivers nothing fails with the error.
    After a crash between the call and the end of the tick, the function is called once more.

    Args:
        tables: The stream tables.
        notify: One or several functions of an `Alert`. The default writes alerts to the log.
        name: The name of the sensor.
        minimum_interval_seconds: The time between two ticks.
        default_status: Whether the sensor is on until a user switches it in the UI.
        resource_key: The key of the `StreamTablesResource`.
        replications: The replications whose tables are also watched.
        catalog: Arguments of `build_catalog`.
    """
    functions = [notify] if callable(notify) else list(notify)
    names = {entry.key: entry.name for entry in build_catalog(tables, **catalog).entries}
    replicated = build_replication_catalog(replications)

    @dg.sensor(
        name=name,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description="Sends alerts: failed refreshes, late tables, failing checks, recoveries.",
        required_resource_keys={resource_key},
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if not context.cursor:
            context.update_cursor(AlertState(beginning(context.instance)).to_cursor())
            return dg.SkipReason("The first tick: reports what happens from now on.")
        before = AlertState.from_cursor(context.cursor)
        lake = getattr(context.resources, resource_key).logs()
        found = look(context.instance, names, lake, before, replicated)
        desk = before.enqueue(found.alerts, len(functions))
        after, errors = replace(desk, positions=found.positions).deliver(functions)
        context.update_cursor(after.to_cursor())
        if errors and after == before:
            # The cursor is unchanged, so the tick may fail, for people to see it.
            raise _delivery_error(len(errors), errors[0]) from errors[0]
        if errors:
            context.log.error(str(_delivery_error(len(errors), errors[0])))
        done = len(desk.waiting) - len(after.waiting)
        said = f"Alerts delivered: {done}; to retry: {len(after.waiting)}."
        return dg.SkipReason(said if desk.waiting else "No new alerts.")

    return alerts


def _delivery_error(count: int, error: Exception) -> UndeliveredAlerts:
    return UndeliveredAlerts(
        f"{count} alerts could not be delivered",
        why=f"{type(error).__name__}: {error}",
        fix="correct the function given as notify; each tick retries the alerts",
    )
