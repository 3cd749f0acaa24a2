"""Rows of PostgreSQL and rows that a stream table has stored, as values that can be compared."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from dagster_streamtables import Lake, visible_columns
from named_rows import NamedRows


def theirs(connection: Any, query: str, *, loosely: bool = False) -> NamedRows:
    """The rows that PostgreSQL returns, under its names."""
    return NamedRows.of_cursor(connection.execute(query), form(loosely))


def ours(lake: Lake, table: str, *, loosely: bool = False) -> NamedRows:
    """The rows of a stream table, under the names that it stores."""
    stored = DeltaTable(lake.location(table))
    rows = stored.to_pyarrow_table(columns=visible_columns(stored))
    return NamedRows.of_arrow(rows, form(loosely))


def of_spark(rows: DataFrame, *, loosely: bool) -> NamedRows:
    """The rows that Spark returns, under its names."""
    return NamedRows.of_spark(rows, form(loosely))


def shown(value: Any) -> Any:
    """A single value, exactly."""
    return _shown(value, False)


def form(loosely: bool) -> Callable[[Any], Any]:
    """How a value is compared; see `_shown`."""
    return lambda value: _shown(value, loosely)


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
