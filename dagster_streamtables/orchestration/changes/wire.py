"""Change assets as a part of a code location: their dependencies, sensor, checks and schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import dagster as dg

from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.changes.change_sensor import build_change_sensor
from dagster_streamtables.orchestration.changes.feed_metadata import follows_of, read_follows
from dagster_streamtables.orchestration.changes.slot_checks import SLOT_KINDS
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings


def connect_change_assets(
    assets: Sequence[dg.AssetsDefinition], catalog: Catalog, source_keys: Mapping[str, dg.AssetKey]
) -> list[dg.AssetsDefinition]:
    """The same change assets, downstream of the assets that a catalog has for their tables."""
    known = {**source_keys, **catalog.observed}
    for entry in catalog.entries:
        known |= {**entry.source_keys, entry.name: entry.key}

    def connect_spec(spec: dg.AssetSpec) -> dg.AssetSpec:
        if read_follows(spec.metadata) is None:
            return spec
        before = keys.read_source_keys(spec.metadata)
        now = {key: known.get(name, key) for name, key in before.items()}
        deps = [now.get(dep.asset_key, dep.asset_key) for dep in spec.deps]
        found = {name: now[key].path for name, key in before.items()}
        spec = spec.merge_attributes(metadata={keys.SOURCE_KEYS: dg.MetadataValue.json(found)})
        return spec.replace_attributes(deps=list(dict.fromkeys(deps)))

    return [asset.map_asset_specs(connect_spec) for asset in assets]


def change_sensors(
    assets: Sequence[dg.AssetsDefinition],
    settings: SensorSettings | None,
    executor: dg.ExecutorDefinition | None,
    name: str,
) -> Iterator[dg.SensorDefinition]:
    """The sensor of the change assets, if there are any; `settings` are those of the refreshes."""
    if assets:
        own = replace(settings or SensorSettings(), name=f"{name}_changes")
        yield build_change_sensor(assets, settings=own, executor=executor, resource_key=name)


def slot_checks(
    assets: Sequence[dg.AssetsDefinition], settings: CheckSettings, name: str
) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of the slots of change assets, one op for each kind."""
    if assets:
        for kind in SLOT_KINDS:
            yield kind.op(settings, name, assets=assets, resource_key=name)


def slot_schedules(
    assets: Sequence[dg.AssetsDefinition],
    settings: CheckSettings,
    executor: dg.ExecutorDefinition | None,
    name: str,
) -> Iterator[dg.ScheduleDefinition]:
    """The schedules of these checks."""
    for kind in SLOT_KINDS:
        yield from kind.schedules(follows_of(assets), "change asset", settings, executor, name)
