"""`ReplicatedTableProps`: one replicated table → its asset, as it is before a refresh."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.markdown import words
from dagster_streamtables.replication.lifecycle.replication import Replication

REPLICATION = "streamtables/replication"
"""The name of the replication that writes the table."""
PUBLISHED = "streamtables/published_table"
"""Its name at the publisher."""
ORIGIN = "streamtables/publisher"
"""The root of a lake, or the address of a server, which has no password."""
PUBLICATIONS = "streamtables/publications"


@dataclass(frozen=True)
class ReplicatedTableProps:
    """The input of a translator, for a replicated table."""

    replication: Replication
    published: str
    """Its name at the publisher."""
    name: str
    """Its name in queries."""
    key: dg.AssetKey
    """The key under which stream tables depend on it, unless the translator decides otherwise."""
    schedule: Schedule | None = None
    columns: Mapping[str, str] | None = None
    """By name, their types; None before the first refresh."""

    @property
    def schema(self) -> str:
        """The name without its last part: ``raw`` of ``raw.orders``; empty if there is none."""
        return self.name.rpartition(".")[0]


def replica_spec(props: ReplicatedTableProps) -> dg.AssetSpec:
    """The asset of a replicated table."""
    replication, known = props.replication, props.columns
    origin = words(replication.publisher.place)
    later = "" if known is not None else "\n\nIts columns are shown after its first refresh."
    return dg.AssetSpec(
        key=props.key,
        description=f"A replica of {words(props.published)} at {origin}, kept by the replication "
        f'"{words(replication.name)}".{later}',
        kinds=_kinds(replication),
        code_version=declaration_fingerprint(replication),
        freshness_policy=freshness_policy(props.schedule),
        metadata={
            keys.TABLE_NAME: props.name,
            PUBLISHED: props.published,
            **_of_replication(replication),
            **({} if known is None else {keys.COLUMN_SCHEMA: keys.column_schema(known)}),
        },
    )


def placeholder(replication: Replication, schedule: Schedule | None) -> dg.AssetSpec:
    """The asset that stands for all tables of a replication while none is known."""
    return dg.AssetSpec(
        key=dg.AssetKey(["replications", replication.name]),
        description=f"Tables of {words(replication.publisher.place)}. **They are not known yet**: "
        "the declaration names publications or schemas, and only their publisher knows what is in "
        "these. Materialize this asset, then reload the code location: an asset for each table "
        "takes its place.",
        kinds=_kinds(replication),
        code_version=declaration_fingerprint(replication),
        freshness_policy=freshness_policy(schedule),
        metadata=_of_replication(replication),
    )


def declaration_fingerprint(replication: Replication) -> str:
    """The code version: it changes with the declaration, and then its tables are refreshed."""
    said = json.dumps(replication.to_json(), sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _of_replication(replication: Replication) -> dict[str, Any]:
    return {
        REPLICATION: replication.name,
        ORIGIN: replication.publisher.place,
        PUBLICATIONS: ", ".join(replication.publications),
    }


def _kinds(replication: Replication) -> set[str]:
    return {"deltalake", replication.publisher.asset_kind}
