"""How the values of a column are read, by what the table's schema says in addition to its type."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_HARMLESS = ("comment", "CURRENT_DEFAULT", "delta.invariants", "delta.generationExpression")
_IDENTITY = "delta.identity."  # the next value of an identity column changes with every commit
_INSIDE = ("type", "fields", "elementType", "keyType", "valueType")


def encoding(field: Any) -> str:
    """The metadata of a field, and of all fields in it, that affect how it is read.

    Args:
        field: In the protocol's "Schema Serialization Format".

    Returns:
        JSON; empty if there is no such metadata.
    """
    found = _metadata(field)
    return json.dumps(found, sort_keys=True) if found else ""


def maps_columns(metadata: Any) -> bool:
    """Whether a ``metaData`` action maps the columns to other names in the files."""
    mode = (metadata.get("configuration") or {}).get("delta.columnMapping.mode") or "none"
    return mode.lower() != "none"


def has_renamed(metadata: Any) -> bool:
    """Whether a column, or a field in one, has another name in the files than in the schema."""
    return maps_columns(metadata) and _has_renamed(json.loads(metadata["schemaString"]))


def _has_renamed(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_has_renamed, node))
    if not isinstance(node, dict):
        return False
    named = (node.get("metadata") or {}).get("delta.columnMapping.physicalName", node.get("name"))
    return named != node.get("name") or any(_has_renamed(node.get(key)) for key in _INSIDE)


def digest(content: bytes) -> str:
    """A digest of content that is only compared."""
    return hashlib.sha256(content).hexdigest()[:24]


def _metadata(node: Any) -> dict[str, Any]:
    if isinstance(node, list):
        return _filled({each["name"]: _metadata(each) for each in node})
    if not isinstance(node, dict):
        return {}
    told = {k: v for k, v in (node.get("metadata") or {}).items() if not _is_harmless(k)}
    return _filled({"metadata": told, **{key: _metadata(node.get(key)) for key in _INSIDE}})


def _is_harmless(key: str) -> bool:
    return key in _HARMLESS or key.startswith(_IDENTITY)


def _filled(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part}
