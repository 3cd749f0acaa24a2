"""The metadata of change assets: what an asset follows, and what a run of it received."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_streamtables.changes.change_window import Changes, SlotSettings
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.source_health import SlotHealth

# On the asset.
FOLLOWS = "streamtables/follows"
"""Its slot, the relation, and the tables that it reads."""
# On each materialization.
FROM = "streamtables/from_timestamp"
TO = "streamtables/to_timestamp"
SNAPSHOT = "streamtables/snapshot"
ROWS = "streamtables/rows/"
"""Followed by a state of the envelope; without one, the rows are `INSERTED` and `DELETED`."""

_COPIES = {"inserted": keys.INSERTED, "deleted": keys.DELETED}


@dataclass(frozen=True)
class Follows:
    """What a change asset follows, as in its metadata."""

    slot: str
    sources: tuple[str, ...]
    """The tables that the relation reads, by their names in it."""
    resnapshot: bool
    """Whether it begins again with a snapshot if history is lost."""


def of_asset(feed: SlotSettings, sources: Mapping[str, dg.AssetKey]) -> dict[str, Any]:
    """What the asset of a relation shows, and what its sensor and its checks need."""
    relation = feed.relation
    text = relation.name if isinstance(relation, StreamTable) else relation
    return {
        FOLLOWS: dg.MetadataValue.json(
            {
                "slot": feed.slot,
                "relation": text,
                "resnapshot": feed.on_history_lost == "resnapshot",
            }
        ),
        keys.SOURCE_KEYS: dg.MetadataValue.json({n: key.path for n, key in sources.items()}),
    }


def read_follows(metadata: Mapping[str, Any]) -> Follows | None:
    """What an asset follows; None if it is no change asset."""
    value = metadata.get(FOLLOWS)
    if value is None:
        return None
    said: Mapping[str, Any] = value.value
    sources = tuple(keys.read_source_keys(metadata))
    return Follows(said["slot"], sources, said["resnapshot"])


def follows_of(assets: Iterable[Any]) -> dict[dg.AssetKey, Follows]:
    """What each change asset among these follows."""
    specs = [s for each in assets if isinstance(each, dg.AssetsDefinition) for s in each.specs]
    found = ((spec.key, read_follows(spec.metadata)) for spec in specs)
    return {key: each for key, each in found if each is not None}


def of_changes(changes: Changes) -> dict[str, Any]:
    """What a run received. The token is left out: it says where tables are."""
    found: dict[str, Any] = {
        FROM: changes.from_timestamp,
        TO: changes.to_timestamp,
        keys.ROWS_IN: len(changes),
        SNAPSHOT: changes.snapshot,
    }
    for state, rows in changes.by_state().items():
        found[_COPIES.get(state, ROWS + state)] = rows
    return found


def of_slot(health: SlotHealth) -> dict[str, Any]:
    """How far a slot is behind, in the source where that is most. What is unknown is left out."""
    lags = health.sources
    measured = {
        keys.VERSIONS_BEHIND: [each.versions_behind for each in lags],
        keys.BEHIND: [each.seconds_behind for each in lags],
        keys.BYTES_BEHIND: [each.bytes_behind for each in lags],
    }
    return {
        key: max(each for each in values if each is not None)
        for key, values in measured.items()
        if values and None not in values
    }
