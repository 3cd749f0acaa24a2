"""The data versions that a refresh really consumed.

Dagster records the newest version of each dependency when the step ran. A refresh knows better:
a source may have moved on since its last observation, or while the refresh ran. Only dependencies
whose events carry a Delta version of ours are corrected; what others write keeps what Dagster says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg

from dagster_streamtables.orchestration.metadata import VERSION
from dagster_streamtables.runtime.report import Window

INPUT_VERSION = "dagster/input_data_version/"
DATA_VERSION = "dagster/data_version"
CODE_VERSION = "dagster/code_version"
# What Dagster knows of a materialization; an event that repeats it has to carry it on.
KEPT_TAGS = (
    DATA_VERSION,
    CODE_VERSION,
    "dagster/data_version_is_user_provided",
    INPUT_VERSION,
    "dagster/input_event_pointer/",
)
# How many refreshes an upstream table may be ahead of the version that was read.
_LOOK_BACK = 20


def consumed_versions(
    instance: dg.DagsterInstance,
    windows: Mapping[str, Window],
    source_keys: Mapping[str, dg.AssetKey],
) -> dict[str, str]:
    """Tags for a materialization, one for each dependency whose version is known.

    Args:
        instance: Where the events of the dependencies are.
        windows: What the refresh consumed, by the names of the sources.
        source_keys: The asset key of each source.
    """
    tags = {}
    for name, window in windows.items():
        key = source_keys.get(name)
        version = _data_version(instance, key, window.after) if key else None
        if key and version:
            tags[INPUT_VERSION + key.to_user_string()] = version
    return tags


def observations(
    instance: dg.DagsterInstance,
    windows: Mapping[str, Window],
    source_keys: Mapping[str, dg.AssetKey],
) -> Iterator[dg.AssetObservation]:
    """What a refresh saw of sources that nobody in Dagster writes, where that is news: else its
    asset would be shown as unsynced with a source that nobody has looked at since.

    Args:
        instance: Where the events of the sources are.
        windows: What the refresh consumed, by the names of the sources.
        source_keys: The asset key of each source.
    """
    for name, window in windows.items():
        key = source_keys.get(name)
        if key is None or instance.get_latest_materialization_event(key) is not None:
            continue
        record = instance.get_latest_data_version_record(key)
        seen = _observed(record.event_log_entry) if record is not None else None
        if seen is None or seen < window.after:
            yield observation(key, window.after)


def observation(key: dg.AssetKey, version: int) -> dg.AssetObservation:
    """That a source has a Delta version."""
    return dg.AssetObservation(key, metadata={VERSION: version}, tags={DATA_VERSION: str(version)})


def carried_on(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a materialization that an event for the same contents repeats."""
    return {tag: value for tag, value in tags.items() if tag.startswith(KEPT_TAGS)}


def _data_version(instance: dg.DagsterInstance, key: dg.AssetKey, version: int) -> str | None:
    records = instance.fetch_materializations(key, limit=_LOOK_BACK).records
    if not records:  # an observed source, whose data version is its Delta version
        return str(version)
    for record in records:
        event = record.asset_materialization
        if event and _delta_version(event.metadata) == version:
            return (event.tags or {}).get(DATA_VERSION)
    return None


def _observed(entry: dg.EventLogEntry) -> int | None:
    event = entry.asset_observation
    return _delta_version(event.metadata) if event is not None else None


def _delta_version(metadata: Mapping[str, dg.MetadataValue]) -> int | None:
    value = metadata.get(VERSION)
    return value.value if isinstance(value, dg.IntMetadataValue) else None
