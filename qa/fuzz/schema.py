"""The sources of random queries: those of the cases, and two with types that these lack."""

from __future__ import annotations

import enum

from sqlglot import exp

from compiler.database import TABLES, Database


class Kind(enum.StrEnum):
    """Types as far as the generator tells them apart. What widens by itself is one kind."""

    INT = "int"
    STRING = "string"
    DECIMAL = "decimal"
    DOUBLE = "double"
    DATE = "date"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    INTS = "array<int>"
    PLACE = "struct<x: int, y: string>"
    MAP = "map<string, int>"
    VARIANT = "variant"


OWN_TABLES: dict[str, dict[str, str]] = {
    "events": {
        "id": "INT",
        "kind": "STRING",
        "happened": "TIMESTAMP",
        "day": "DATE",
        "tags": "ARRAY<INT>",
        "place": "STRUCT<x: INT, y: STRING>",
        "ok": "BOOLEAN",
    },
    "edges": {"id": "INT", "customer": "INT"},
    # Read on Spark alone: to DuckDB a map is a list.
    "bags": {"id": "INT", "m": "MAP<STRING, INT>", "s": "STRING"},
}
SOURCES: dict[str, dict[str, str]] = {**TABLES, **OWN_TABLES}

_KINDS = {
    "INT": Kind.INT,
    "BIGINT": Kind.INT,
    "STRING": Kind.STRING,
    "DECIMAL(10, 2)": Kind.DECIMAL,
    "DECIMAL(38, 4)": Kind.DECIMAL,
    "DATE": Kind.DATE,
    "BOOLEAN": Kind.BOOLEAN,
    "TIMESTAMP": Kind.TIMESTAMP,
    "DOUBLE": Kind.DOUBLE,
    "ARRAY<INT>": Kind.INTS,
    "STRUCT<x: INT, y: STRING>": Kind.PLACE,
    "MAP<STRING, INT>": Kind.MAP,
}
# Wide decimals and exact halves: what is summed is exact in any order.
VALUES: dict[str, tuple[str, ...]] = {
    "INT": ("1", "2", "3", "NULL", "0"),
    "BIGINT": ("1", "2", "3", "NULL"),
    "STRING": ("'north'", "'south'", "'1'", "NULL"),
    "BOOLEAN": ("true", "false", "NULL"),
    "DOUBLE": ("0.5", "-0.25", "2.0", "NULL"),
    "DECIMAL(10, 2)": ("1.50", "-1.50", "2.25", "NULL"),
    "DECIMAL(38, 4)": ("1.5", "-99.0001", "NULL"),
    "DATE": ("'2013-01-31'", "'2013-02-01'", "NULL"),
    "TIMESTAMP": (
        "'2013-01-31 10:00:00'",
        "'2013-01-31 23:30:00'",
        "'2013-02-01 00:00:00'",
        "NULL",
    ),
    "ARRAY<INT>": ("[1, 2]", "[2, NULL, 2]", "[]::INT[]", "NULL"),
    "STRUCT<x: INT, y: STRING>": ("{'x': 1, 'y': 'north'}", "{'x': 2, 'y': NULL}", "NULL"),
    "MAP<STRING, INT>": (
        "MAP {'a': 1, 'b': 2}",
        "MAP {'b': 2, 'a': 1}",
        "MAP {'a': NULL}",
        "MAP([]::TEXT[], []::INT[])",
        "NULL",
    ),
}
"""Few values of each type, so that rows meet; as literals of DuckDB."""


def columns_of(table: str) -> tuple[tuple[str, Kind], ...]:
    return tuple((name, _KINDS[type_]) for name, type_ in SOURCES[table].items())


class FuzzDatabase(Database):
    """The database of the cases, with the tables that only random queries read."""

    def __init__(self) -> None:
        super().__init__()
        self.run("SET TimeZone = 'UTC'")
        for table, columns in OWN_TABLES.items():
            kinds = {name: exp.DataType.build(t, dialect="spark") for name, t in columns.items()}
            typed = ", ".join(f'"{name}" {type_.sql("duckdb")}' for name, type_ in kinds.items())
            for suffix in ("", "@before", "@after"):
                self.run(f'CREATE TABLE "{table}{suffix}" ({typed})')
            self.run(f'CREATE TABLE "{table}@change" ({typed}, __weight BIGINT)')
