"""Which engine reads and writes a target: delta-rs, or Spark where delta-rs would not be exact."""

from __future__ import annotations

from dagster_streamtables.replication.model.published_table import Operation, PublishedTable
from dagster_streamtables.runtime.delta.data_rows import alike
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.target import FILE_SIZE

_DELTA_RS = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz",
    }
)  # fmt: skip
"""The features of the Delta protocol with which delta-rs writes rows."""
_SPARK = _DELTA_RS | {
    "allowColumnDefaults", "checkpointProtection", "clustering", "columnMapping", "domainMetadata",
    "identityColumns", "inCommitTimestamp", "rowTracking", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck",
}  # fmt: skip
_COMPUTED = "delta.generationExpression"
_IDENTITY = "delta.identity.allowExplicitInsert"
_DEFAULT = "CURRENT_DEFAULT"


def reason_for_spark(log: TableLog) -> str:
    """Why only Spark writes a table; empty if delta-rs does."""
    unknown = sorted(log.features - _DELTA_RS)
    if unknown:
        return f"it has features that delta-rs does not write: {', '.join(unknown)}"
    if log.maps_columns:
        return "it maps its columns to other names"
    if log.vector_rows != 0:
        return "some of its rows are deleted by deletion vectors"
    if filled(log):
        return "it computes columns"
    if not alike(log, every=FILE_SIZE not in log.settings):  # which a copy would have set
        return (
            "it pads its texts (CHAR), or has files that engines read differently: times in other "
            "encodings, or columns in another case"
        )
    return ""


def reason_against(log: TableLog, table: PublishedTable) -> str:
    """Why a table cannot be the target of a published one with either engine; empty if it can."""
    unknown = sorted(log.features - _SPARK)
    if unknown:
        return f"it has features that are not written here: {', '.join(unknown)}"
    append_only = log.settings.get("delta.appendOnly", "").lower() == "true"
    if append_only and table.operations - {Operation.INSERT}:
        return "it is append-only, and more than inserts are published"
    for name in numbered(log):
        if name in table.schema.names:
            return f'its column "{name}" is GENERATED ALWAYS AS IDENTITY, and is published'
        if table.identity is None and table.operations & {Operation.UPDATE, Operation.DELETE}:
            return (
                f'its column "{name}" is GENERATED ALWAYS AS IDENTITY, and the published table has '
                "no identity: of equal rows, those that stay would be numbered anew"
            )
    return ""


def filled(log: TableLog) -> frozenset[str]:
    """The columns that have a value in a new row which does not say one."""
    return _with(log, _COMPUTED) | _with(log, _DEFAULT) | _with(log, _IDENTITY)


def computed(log: TableLog) -> frozenset[str]:
    """The columns whose values are computed from others."""
    return _with(log, _COMPUTED)


def numbered(log: TableLog) -> list[str]:
    """The columns that take no value, since the table numbers its rows in them."""
    return sorted(
        field["name"]
        for field in log.fields
        if (field.get("metadata") or {}).get(_IDENTITY) in (False, "false")
    )


def _with(log: TableLog, key: str) -> frozenset[str]:
    return frozenset(f["name"] for f in log.fields if key in (f.get("metadata") or {}))
