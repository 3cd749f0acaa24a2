"""How the values of a column are read, by what the table's schema says in addition to its type."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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


def maps_columns(settings: Mapping[str, str | None]) -> bool:
    """Whether a table of these properties maps its columns to other names in the files.

    Includes protocol version 5, which lists no features.
    """
    return (settings.get("delta.columnMapping.mode") or "none").lower() != "none"


def has_renamed(fields: Any) -> bool:
    """Whether a column, or a field in one, has another name in the files than in the schema.

    Args:
        fields: In the protocol's "Schema Serialization Format".
    """
    if isinstance(fields, list):
        return any(map(has_renamed, fields))
    if not isinstance(fields, dict):
        return False
    name = fields.get("name")
    named = (fields.get("metadata") or {}).get("delta.columnMapping.physicalName", name)
    return named != name or any(has_renamed(fields.get(key)) for key in _INSIDE)


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
