"""`StreamTablesTranslator`: one stream table → one asset. Subclass it to customize the assets."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.declare.analyze import TableAnalysis
from dagster_streamtables.declare.load import Declared
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.markdown import code_block, words
from dagster_streamtables.orchestration.catalog.replicated_asset import (
    ReplicatedTableProps,
    replica_spec,
)
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.compiler import Plan


@dataclass(frozen=True)
class StreamTableProps:
    """The input of a translator."""

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
        """The name without its last part: ``sales`` of ``sales.paid``; empty if there is none."""
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
        return replica_spec(props)


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
