"""How the values of a column are to be read, as the table's schema says beside its type."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_HARMLESS = ("comment", "CURRENT_DEFAULT", "delta.invariants", "delta.generationExpression")
_IDENTITY = "delta.identity."  # what an identity column gives next changes with every commit
_INSIDE = ("type", "fields", "elementType", "keyType", "valueType")


def encoding(field: Any) -> str:
    """What the metadata of a field, and of all that is in it, say about reading it.

    Args:
        field: As the protocol's "Schema Serialization Format" has it.

    Returns:
        JSON; empty where there is nothing to say.
    """
    found = _metadata(field)
    return json.dumps(found, sort_keys=True) if found else ""


def digest(content: bytes) -> str:
    """What stands for a content that is only ever compared."""
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
