"""The alert sensor: tells people what happened to stream tables."""

# No `from __future__ import annotations`: Dagster reads the annotations of sensors at run time.
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.alerts.alerts import Desk, Notify, log_alert
from dagster_streamtables.orchestration.alerts.dagster_events import beginning, look
from dagster_streamtables.orchestration.catalog.catalog import Tables, build_catalog
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY


class UndeliveredAlerts(StreamTablesError):
    """A function that was to be told of an alert raised an error; the alert is tried again."""


def build_alert_sensor(
    *,
    tables: Tables,
    notify: Notify | Sequence[Notify] = log_alert,
    name: str = "streamtables_alerts",
    minimum_interval_seconds: int = 30,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> dg.SensorDefinition:
    """A sensor that tells of failed refreshes, late tables, failing checks, and recoveries.

    A function is called once with each alert. If it raises, the tick fails with its error, and it
    is called with that alert again in the next tick; the other alerts are not held up. After a
    crash between the call and the end of the tick, it is called once more.

    Args:
        tables: The stream tables.
        notify: A function of an `Alert`, or several. By default it is written to the log.
        name: The name of the sensor.
        minimum_interval_seconds: Between two ticks.
        default_status: Whether it is on before anybody touches its switch.
        resource_key: Of the `StreamTablesResource`.
        catalog: As for `build_catalog`.
    """
    functions = [notify] if callable(notify) else list(notify)
    names = {entry.key: entry.name for entry in build_catalog(tables, **catalog).entries}

    @dg.sensor(
        name=name,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description="Tells of what happened to the stream tables.",
        required_resource_keys={resource_key},
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if not context.cursor:
            context.update_cursor(Desk(beginning(context.instance)).to_cursor())
            return dg.SkipReason("Tells of what happens from now on.")
        before = Desk.from_cursor(context.cursor)
        controls = getattr(context.resources, resource_key).logs().controls
        found = look(context.instance, names, controls, before)
        desk = before.taken(found.alerts, len(functions))
        told, errors = replace(desk, positions=found.positions).delivered(functions)
        context.update_cursor(told.to_cursor())
        if errors and told == before:
            # Nothing is lost with the tick, so it may be the red one that people look at.
            raise _undelivered(len(errors), errors[0]) from errors[0]
        if errors:
            context.log.error(str(_undelivered(len(errors), errors[0])))
        done = len(desk.waiting) - len(told.waiting)
        said = f"{done} alerts delivered, {len(told.waiting)} are tried again."
        return dg.SkipReason(said if desk.waiting else "Nothing happened.")

    return alerts


def _undelivered(count: int, error: Exception) -> UndeliveredAlerts:
    return UndeliveredAlerts(
        f"{count} alerts could not be delivered",
        why=f"{type(error).__name__}: {error}",
        fix="mend the function that is given as notify; they are tried again at each tick",
    )
