"""Which engine writes a table: delta-rs, or Spark where delta-rs would not be exact."""

from __future__ import annotations

from dagster_streamtables.runtime.delta.data_rows import alike
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.target import is_sized_here

DELTA_RS_FEATURES = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz",
    }
)  # fmt: skip
"""The features of the Delta protocol with which delta-rs writes rows."""
_COMPUTED = "delta.generationExpression"
_IDENTITY = "delta.identity.allowExplicitInsert"
_DEFAULT = "CURRENT_DEFAULT"


def reason_for_spark(log: TableLog) -> str:
    """Why only Spark writes a table exactly; empty if delta-rs does."""
    unknown = sorted(log.features - DELTA_RS_FEATURES)
    if unknown:
        return f"it has features that delta-rs does not write: {', '.join(unknown)}"
    if log.maps_columns:
        return "it maps its columns to other names"
    if log.vector_rows != 0:
        return "some of its rows are deleted by deletion vectors"
    if filled(log):
        return "it computes columns"
    if not alike(log, every=not is_sized_here(log.settings)):
        return (
            "it pads its texts (CHAR), or has files that engines read differently: times in other "
            "encodings, columns in another case, or bytes that are no UTF-8"
        )
    return ""


def computed(log: TableLog) -> frozenset[str]:
    """The columns whose values are computed from others."""
    return _with(log, _COMPUTED)


def filled(log: TableLog) -> frozenset[str]:
    """The columns that have a value in a new row which does not say one."""
    return _with(log, _COMPUTED) | _with(log, _DEFAULT) | _with(log, _IDENTITY)


def numbered(log: TableLog) -> list[str]:
    """The columns that take no value, since the table numbers its rows in them."""
    return sorted(
        field["name"]
        for field in log.fields
        if (field.get("metadata") or {}).get(_IDENTITY) in (False, "false")
    )


def _with(log: TableLog, key: str) -> frozenset[str]:
    return frozenset(f["name"] for f in log.fields if key in (f.get("metadata") or {}))
