"""What each refresh sensor refreshes, for a worker that does it in its place.

A worker drives what a sensor of the same definitions would: the same tables, decided with the same
settings, on the same resource.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import dagster as dg

from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks


@dataclass(frozen=True)
class SensorTargets:
    """The arguments of one refresh sensor."""

    assets: NodeAssets
    resource_key: str
    settings: SensorSettings
    quick: QuickChecks | None


_sensed: WeakKeyDictionary[Callable[..., Any], SensorTargets] = WeakKeyDictionary()
"""By the function of the sensor: a project of `dg` serves copies of sensors, with the same function
and the place of their component."""


def remember(sensor: dg.SensorDefinition, sensed: SensorTargets) -> dg.SensorDefinition:
    """The same sensor; `targets_of` knows it from now on."""
    _sensed[sensor._raw_fn] = sensed
    return sensor


def targets_of(definitions: dg.Definitions) -> list[SensorTargets]:
    """What the refresh sensors of some definitions refresh."""
    sensors = [each for each in definitions.sensors or () if isinstance(each, dg.SensorDefinition)]
    return [_sensed[each._raw_fn] for each in sensors if each._raw_fn in _sensed]
