"""Rows of PostgreSQL and rows that a stream table has stored, as values that can be compared."""

from __future__ import annotations

import datetime
import json
import uuid
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from deltalake import DeltaTable

from dagster_streamtables import Lake


def theirs(connection: Any, query: str, *, loosely: bool = False) -> tuple[list[str], Counter[Any]]:
    """The names of the columns, and the rows."""
    cursor = connection.execute(query)
    names = [column.name for column in cursor.description]
    return names, Counter(_values(row, loosely) for row in cursor.fetchall())


def ours(lake: Lake, table: str, names: list[str], *, loosely: bool = False) -> Counter[Any]:
    stored = DeltaTable(lake.location(table)).to_pyarrow_table(columns=names)
    return Counter(_values(tuple(row[n] for n in names), loosely) for row in stored.to_pylist())


def shown(rows: Iterable[tuple[Any, ...]], *, loosely: bool) -> Counter[Any]:
    return Counter(_values(row, loosely) for row in rows)


def _values(row: tuple[Any, ...], loosely: bool) -> tuple[Any, ...]:
    return tuple(_shown(value, loosely) for value in row)


def _shown(value: Any, loosely: bool) -> Any:
    """A number is the same in any type; loosely also with 12 digits, of the 24 after the point that
    quotients have here, and JSON as what it says."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float | int | Decimal):
        return _number(value, loosely)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, memoryview | bytes):
        return bytes(value)
    if isinstance(value, str) and loosely:
        return _json(value)
    if isinstance(value, dict):
        return tuple(sorted((k, _shown(v, loosely)) for k, v in value.items()))
    if isinstance(value, list):
        return tuple(_shown(each, loosely) for each in value)
    return value


def _number(value: float | Decimal, loosely: bool) -> Any:
    if loosely:
        kept = value if abs(value) > 1 else round(value, 24)
        return f"{float(kept):.12g}" if kept else "0"
    if isinstance(value, float):
        return Decimal(value) if value == int(value) else ("float", repr(value))
    return Decimal(value).normalize() + 0


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return _shown(found, True) if not isinstance(found, str) else found
