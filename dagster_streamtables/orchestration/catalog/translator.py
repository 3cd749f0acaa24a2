"""`StreamTablesTranslator`: one stream table, or replicated table → its asset before any refresh.

Subclass it to customize the assets.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.declare.sql_files import Declared
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.metadata import code_block, words
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.compiler import Plan


REPLICATION = "streamtables/replication"
"""The name of the replication that writes the table."""
PUBLISHED = "streamtables/published_table"
"""The name of the table at the publisher."""
ORIGIN = "streamtables/publisher"
"""The root of a lake, or the address of a server, which has no password."""
PUBLICATIONS = "streamtables/publications"


@dataclass(frozen=True)
class StreamTableProps:
    """The input of a translator, for a stream table."""

    examined: TableAnalysis
    source_keys: Mapping[str, dg.AssetKey] = field(default_factory=dict[str, dg.AssetKey])
    """The asset key of each source, by its name in the query."""
    change_sql: bool = True
    """Whether the asset shows the SQL of its change."""

    @property
    def name(self) -> str:
        """The name of the table in queries."""
        return self.examined.name

    @property
    def schema(self) -> str:
        """The name without its last part: ``sales`` of ``sales.paid``, or empty."""
        return self.name.rpartition(".")[0]

    @property
    def table(self) -> StreamTable | None:
        """The declaration; None if it is too broken to be one."""
        declared = self.examined.declared
        return declared if isinstance(declared, StreamTable) else None

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, by their names in it."""
        return self.examined.sources


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
    """The type of each column; None before the first refresh."""

    @property
    def schema(self) -> str:
        """The name without its last part: ``raw`` of ``raw.orders``, or empty."""
        return self.name.rpartition(".")[0]


class StreamTablesTranslator:
    """Decides the key, dependencies and metadata of each asset.

    The factories add to its result what a refresh needs.

    Examples:
        ```python
        class Prefixed(StreamTablesTranslator):
            def get_asset_spec(self, props):
                spec = super().get_asset_spec(props)
                return spec.replace_attributes(key=spec.key.with_prefix("lake"))
        ```
    """

    def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
        """The asset of a stream table, or of a broken declaration."""
        examined = props.examined
        table = props.table
        plan = examined.plan
        return dg.AssetSpec(
            key=asset_key(examined.name),
            deps=list(dict.fromkeys(props.source_keys.values())),
            owners=table.owners if table else None,
            tags=table.tags if table else None,
            group_name=(table.group or None) if table else None,
            description=_description(examined),
            code_version=code_version(examined.declared),
            kinds={"spark", "deltalake", "sql"},
            freshness_policy=None if examined.error else freshness_policy(examined.schedule),
            metadata={
                keys.TABLE_NAME: examined.name,
                **_settings(examined),
                **_code_reference(examined.declared),
                **(_plan(plan, props) if plan else {}),
            },
        )

    def get_replicated_spec(self, props: ReplicatedTableProps) -> dg.AssetSpec:
        """The asset of a table that a replication writes."""
        replication, known = props.replication, props.columns
        later = "" if known is not None else "\n\nIts columns are shown after its first refresh."
        return dg.AssetSpec(
            key=props.key,
            description=f"A replica of {words(props.published)} at "
            f"{words(replication.publisher.place)}, kept by the replication "
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


def asset_key(name: str) -> dg.AssetKey:
    """The asset key of a table: its name split at the dots, or its path split at the slashes.

    >>> asset_key("sales.orders").path, asset_key("delta.`/data/orders`").path
    (['sales', 'orders'], ['delta', 'data', 'orders'])
    """
    schema, quote, path = name.partition("`")
    if quote:
        parts = [part for part in path.rstrip("`").split("/") if part]
        return dg.AssetKey([schema.rstrip("."), *parts])
    return dg.AssetKey(name.split("."))


def code_version(declared: Declared) -> str:
    """The code version of a declaration. When it changes, Dagster shows the asset as out of date:
    so it changes with the meaning of the query, and not with its form."""
    if isinstance(declared, StreamTable):
        with suppress(StreamTablesError):
            return declared.meaning
    return hashlib.sha256(declared.query.strip().encode()).hexdigest()[:16]


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


def _description(examined: TableAnalysis) -> str:
    table = examined.declared
    parts = []
    if examined.error is not None:
        parts.append(f"Broken: {words(examined.error.what)}\n\n{code_block(str(examined.error))}")
    if examined.doubt is not None:
        parts.append(f"When the code location was loaded: {words(examined.doubt.what)}.")
    if isinstance(table, StreamTable) and table.description:
        parts.append(table.description)
    elif examined.error is None:  # a list of assets shows the first line alone
        parts.append(f"Stream table over {words(', '.join(examined.sources) or 'no table')}.")
    if table.query.strip():
        parts.append(f"#### Query\n\n{code_block(table.query, 'sql')}")
    for view in table.views if isinstance(table, StreamTable) else ():
        said = f"{view.description}\n\n" if view.description else ""
        parts.append(f"#### View {words(view.name)}\n\n{said}{code_block(view.query, 'sql')}")
    return "\n\n".join(parts)


def _plan(plan: Plan, props: StreamTableProps) -> dict[str, Any]:
    changed_at = props.table.changed_at if props.table is not None else ""
    return keys.plan_metadata(
        plan, props.source_keys, change_sql=props.change_sql, changed_at=changed_at
    )


def _settings(examined: TableAnalysis) -> dict[str, Any]:
    table = examined.declared
    if not isinstance(table, StreamTable):
        return {}
    settings = (
        (keys.DIALECT, table.dialect, StreamTable.dialect),
        (keys.SESSION_TIMEZONE, table.session_timezone, StreamTable.session_timezone),
    )
    return {
        keys.SCHEDULE: table.schedule or "CALCULATED",
        keys.RESOLVED_SCHEDULE: examined.resolved_schedule,
        keys.MODE: str(table.mode),
        **({keys.RESOLVED_MODE: f"FULL: {examined.refusal}"} if examined.refusal else {}),
        **{key: value for key, value, usual in settings if value != usual},
    }


def _code_reference(declared: Declared) -> dict[str, Any]:
    if declared.file is None:
        return {}
    # Code references are in beta, but users did not choose them, so do not warn.
    with warnings.catch_warnings(action="ignore", category=dg.BetaWarning):
        reference = dg.LocalFileCodeReference(file_path=declared.file, line_number=declared.line)
        return {keys.CODE_REFERENCES: dg.CodeReferencesMetadataValue(code_references=[reference])}


def _of_replication(replication: Replication) -> dict[str, Any]:
    return {
        REPLICATION: replication.name,
        ORIGIN: replication.publisher.place,
        PUBLICATIONS: ", ".join(replication.publications),
    }


def _kinds(replication: Replication) -> set[str]:
    return {"deltalake", replication.publisher.asset_kind}
