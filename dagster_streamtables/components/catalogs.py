"""What one component defines: its stream tables and its replicated tables, with their assets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.declare.load import Declared
from dagster_streamtables.declare.replications import ScheduledReplication
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.catalog.replicated import ReplicationCatalog
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator
from dagster_streamtables.orchestration.definitions import build_declared_catalog
from dagster_streamtables.orchestration.replication.wire import replication_catalog


@dataclass(frozen=True)
class Catalogs:
    """What one component defines."""

    tables: Catalog
    """All sources that it does not replicate are observed, even those with a writer."""
    replicated: ReplicationCatalog


class Declarations(Protocol):
    """The fields of the component that declare what it defines."""

    resource: StreamTablesResource
    folder: str | None
    tables: Sequence[Declared]
    views: Sequence[View]
    replications: Sequence[ScheduledReplication]
    group_name: str | None
    source_group_name: str | None
    source_keys: dict[str, dg.AssetKey]
    min_schedule_seconds: float
    compile_at_load: bool
    strict: bool


def build_catalogs(
    declared: Declarations, here: Path, name: str, translator: StreamTablesTranslator
) -> Catalogs:
    """
    Args:
        declared: The component.
        here: The base of relative paths.
        name: The name of the resource.
        translator: Decides the assets.

    Raises:
        StreamTablesError: The folder does not exist or, if `strict`, a definition is broken.
    """
    about: dict[str, Any] = {
        "translator": translator,
        "min_schedule_seconds": declared.min_schedule_seconds,
    }
    replicated = replication_catalog(
        declared.replications,
        declared.resource,
        name,
        group_name=declared.source_group_name,
        source_keys=declared.source_keys,
        **about,
    )
    folder = here / declared.folder if declared.folder else None
    catalog = build_declared_catalog(
        declared.tables,
        folder,
        declared.views,
        resource=declared.resource,
        compile_at_load=declared.compile_at_load,
        strict=declared.strict,
        not_here={*replicated.nodes},
        group_name=declared.group_name,
        source_keys={**declared.source_keys, **replicated.keys},
        written_by_dagster={*replicated.nodes},
        **about,
    )
    if not catalog.entries and not replicated.entries:
        raise InvalidDefinition(
            "there are no stream tables",
            where=str(folder or here),
            fix="give a folder with .sql files, or declare tables below `tables`",
        )
    return Catalogs(catalog, replicated)
