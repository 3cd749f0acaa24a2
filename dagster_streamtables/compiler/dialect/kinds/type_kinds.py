"""The kinds of types: of a cast, and of a column of a Delta table."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind

_T = exp.DataType.Type
_OF_TYPE: dict[Any, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.MEDIUMINT), Kind.INT),
    **dict.fromkeys((_T.BIGINT, _T.UINT, _T.INT128), Kind.BIGINT),
    _T.DECIMAL: Kind.DECIMAL,
    _T.FLOAT: Kind.FLOAT,
    _T.DOUBLE: Kind.DOUBLE,
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR, _T.NCHAR, _T.UUID), Kind.STRING),
    _T.BOOLEAN: Kind.BOOL,
    **dict.fromkeys((_T.DATE, _T.DATE32), Kind.DATE),
    **dict.fromkeys((_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ), Kind.INSTANT),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.DATETIME, _T.DATETIME2), Kind.LOCAL),
    **dict.fromkeys((_T.ARRAY, _T.LIST), Kind.ARRAY),
    **dict.fromkeys((_T.JSON, _T.JSONB), Kind.JSON),
    **dict.fromkeys((_T.BINARY, _T.VARBINARY), Kind.BINARY),
    _T.INTERVAL: Kind.INTERVAL,
    _T.TIME: Kind.TIME,
}


def spark_kind(type_: str) -> Kind:
    """The kind of a column of a Delta table."""
    try:
        found = exp.DataType.build(type_, dialect="spark")
    except SqlglotError:
        return Kind.OTHER
    if found.is_type(_T.TIMESTAMP):
        return Kind.INSTANT
    return Kind.UNKNOWN if found.is_type(_T.UNKNOWN) else _OF_TYPE.get(found.this, Kind.OTHER)


def type_kind(type_: exp.DataType) -> Kind:
    """The kind of a type in a cast, in a dialect where TIMESTAMP has no zone."""
    return _OF_TYPE.get(type_.this, Kind.OTHER)


def element_kind(type_: str) -> Kind:
    """The kind of the elements of a column of a Delta table."""
    found = re.fullmatch(r"array<(.*)>", type_.strip(), re.IGNORECASE)
    return spark_kind(found[1]) if found else Kind.UNKNOWN
