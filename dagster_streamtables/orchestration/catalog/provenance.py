"""The data versions that a refresh actually read.

Dagster records the newest version of each dependency when the step runs. A refresh knows better: a
source may have changed since its last observation, or during the refresh. Only dependencies whose
events carry a Delta version of this package are corrected; for others, Dagster's version stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from dagster_streamtables.orchestration.catalog.metadata import COMMIT, VERSION
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.model.refresh_report import Refresh

INPUT_VERSION = "dagster/input_data_version/"
DATA_VERSION = "dagster/data_version"
CODE_VERSION = "dagster/code_version"
_POINTER = "dagster/input_event_pointer/"
_USER_PROVIDED = "dagster/data_version_is_user_provided"
# What Dagster assumes of an asset without events.
_UNKNOWN = "INITIAL"
_NO_POINTER = "NULL"
# Tags of Dagster that an event repeating a materialization must copy.
KEPT_TAGS = (DATA_VERSION, CODE_VERSION, _USER_PROVIDED, INPUT_VERSION, _POINTER)
# How many refreshes ahead of the version that was read an upstream table may be.
_LOOK_BACK = 20


def trace_inputs(
    instance: dg.DagsterInstance, refresh: Refresh, source_keys: Mapping[str, dg.AssetKey]
) -> tuple[dict[str, str], list[dg.AssetObservation]]:
    """The tags of a materialization, with the known version of each dependency, and an observation
    of each source that no asset writes, if the refresh saw a newer version of it. Without the
    observation, Dagster would show the asset as unsynced with that source."""
    tags: dict[str, str] = {}
    news: list[dg.AssetObservation] = []
    for name, window in refresh.windows.items():
        key = source_keys.get(name)
        if key is None:
            continue
        if version := refresh.read.get(name):
            tags[INPUT_VERSION + key.to_user_string()] = version
            continue
        records = instance.fetch_materializations(key, limit=_LOOK_BACK).records
        if records:
            version = _data_version(records, window.after)
        else:  # an observed source
            before = last_observation(instance, key)
            head = refresh.seen.get(name) or Head(window.after, "")
            seen = observation(key, head, before)
            version = (seen.tags or {})[DATA_VERSION]
            news += [seen] if _is_news(before, window.after) else []
        if version:
            tags[INPUT_VERSION + key.to_user_string()] = version
    return tags, news


def tags_without_run(
    instance: dg.DagsterInstance, spec: dg.AssetSpec, data_version: str, read: Mapping[str, str]
) -> dict[str, str]:
    """The tags of a materialization without a run, as Dagster adds them to one in a run. `read` has
    the known data versions that the refresh read."""
    tags = {DATA_VERSION: data_version, _USER_PROVIDED: "true"}
    if spec.code_version is not None:
        tags[CODE_VERSION] = spec.code_version
    for key in dict.fromkeys(dep.asset_key for dep in spec.deps):
        name = key.to_user_string()
        record = instance.get_latest_data_version_record(key)
        entry = record.event_log_entry if record is not None else None
        event = entry and (entry.asset_materialization or entry.asset_observation)
        latest = (event.tags or {}).get(DATA_VERSION) if event else None
        tags[INPUT_VERSION + name] = read.get(INPUT_VERSION + name) or latest or _UNKNOWN
        tags[_POINTER + name] = str(record.storage_id) if record is not None else _NO_POINTER
    return tags


def observation(
    key: dg.AssetKey, head: Head, before: dg.AssetObservation | None
) -> dg.AssetObservation:
    """The event that a source has a Delta version, which is its data version. `before` is its last
    observation.

    If a table was replaced, and its new log has reached the number that Dagster knows, a digest is
    added: otherwise nothing downstream would be out of date.
    """
    metadata: dict[str, int | str] = {VERSION: head.version, COMMIT: head.commit}
    version = str(head.version)
    if before is not None and _delta_version(before.metadata) == head.version:
        commit = before.metadata.get(COMMIT)
        same = commit is None or commit.value == head.commit or not head.commit
        known = (before.tags or {}).get(DATA_VERSION, version)
        version = known if same else f"{version} ({head.commit[:8]})"
    return dg.AssetObservation(key, metadata=metadata, tags={DATA_VERSION: version})


def last_observation(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetObservation | None:
    """The last observation of the version of a source."""
    record = instance.get_latest_data_version_record(key)
    return record.event_log_entry.asset_observation if record is not None else None


def copy_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a materialization that an event for the same rows must copy."""
    return {tag: value for tag, value in tags.items() if tag.startswith(KEPT_TAGS)}


def _data_version(records: Sequence[dg.EventLogRecord], version: int) -> str | None:
    for record in records:
        event = record.asset_materialization
        if event and _delta_version(event.metadata) == version:
            return (event.tags or {}).get(DATA_VERSION)
    return None


def _is_news(before: dg.AssetObservation | None, version: int) -> bool:
    seen = _delta_version(before.metadata) if before is not None else None
    return seen is None or seen < version


def _delta_version(metadata: Mapping[str, dg.MetadataValue]) -> int | None:
    value = metadata.get(VERSION)
    return value.value if isinstance(value, dg.IntMetadataValue) else None
