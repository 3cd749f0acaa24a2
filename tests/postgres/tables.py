"""The table of the cases, in PostgreSQL and as a Delta table, and its changes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from dagster_streamtables import Lake
from runtime.delta import write

_UTC = datetime.UTC
TYPES = {
    "id": ("INT", "int", pa.int32()),
    "x": ("INT", "int", pa.int32()),
    "y": ("INT", "int", pa.int32()),
    "b": ("BIGINT", "bigint", pa.int64()),
    "d": ("DOUBLE PRECISION", "double", pa.float64()),
    "n": ("NUMERIC(10, 2)", "decimal(10,2)", pa.decimal128(10, 2)),
    "m": ("NUMERIC(20, 6)", "decimal(20,6)", pa.decimal128(20, 6)),
    "s": ("TEXT", "string", pa.string()),
    "u": ("TEXT", "string", pa.string()),
    "f": ("BOOLEAN", "boolean", pa.bool_()),
    "ts": ("TIMESTAMP", "timestamp_ntz", pa.timestamp("us")),
    "tz": ("TIMESTAMPTZ", "timestamp", pa.timestamp("us", "UTC")),
    "dt": ("DATE", "date", pa.date32()),
    "arr": ("INT[]", "array<int>", pa.list_(pa.int32())),
    "sarr": ("TEXT[]", "array<string>", pa.list_(pa.string())),
    "j": ("JSONB", "string", pa.string()),
    "bin": ("BYTEA", "binary", pa.binary()),
}
COLUMNS = {"t": {name: spark for name, (_, spark, _) in TYPES.items()}}
Row = tuple[Any, ...]


def _row(
    id_: int, x: int | None, y: int | None, b: int | None, d: float | None, n: str | None,
    m: str | None, s: str | None, u: str | None, f: bool | None, ts: str | None,
    arr: list[int | None] | None, sarr: list[str | None] | None, j: str | None, bin_: bytes | None,
) -> Row:  # fmt: skip
    """A row whose instant and date are those of its timestamp."""
    at = None if ts is None else datetime.datetime.fromisoformat(ts)
    return (
        id_, x, y, b, d, None if n is None else Decimal(n), None if m is None else Decimal(m),
        s, u, f, at, None if at is None else at.replace(tzinfo=_UTC),
        None if at is None else at.date(), arr, sarr, j, bin_,
    )  # fmt: skip


ROWS = [
    _row(1, 7, 2, 70, 0.5, "1.25", "7.500000", "abc", "hello world", True,
         "2024-01-31 10:30:45.123456", [1, 2, 3], ["a", "b"],
         '{"a": 1, "b": {"c": "x y", "d": [1, 2.50, "z"]}, "k": "v"}', b"\x01\xff"),
    _row(2, -7, 2, -70, -2.5, "-2.50", "-7.200000", "Ab", "ÀÉ Öl_x-1", False,
         "2023-12-31 23:59:59", [], [], '{"a": "1", "b": null, "e": [], "t": true}', b""),
    _row(3, 2, 3, 11, 3.5, "0.10", "0.000123", "", "  pad  ", None, "2024-02-29 00:00:00",
         [5, None, 7], ["b", None, "c,d"], '[1, "a", {"x": "y"}]', b"abc"),
    _row(4, None, None, None, None, None, None, None, None, None, None, None, None, None, None),
    _row(5, 12, 5, 10**15 + 1, 123456.789, "99999999.99", "12345678901234.123456", "a.b.c",
         "foo,bar,,baz", True, "1969-07-20 20:17:40.5", [2, 2, 9], ["x", "a", "x"],
         '{"a": 2.50, "b": {"c": "q\\"uo\\\\te é 😀"}}', b"\x00\x00"),
    _row(6, 3, 7, 9, 0.1, "3.00", "3.000000", "a😀b", "Zeile1\nZeile2", False,
         "2024-03-31 02:30:00", [7], ["a"], '"str"', b"\xff\xfe"),
    _row(7, 1, 1, 1, -0.5, "-0.01", "0.333333", "%x_", "aAbB", True,
         "2001-09-09 01:46:40.999999", [None], ["A", "é"], "12", b"\x7f"),
    _row(8, 5, 2, 8, 2.5, "2.50", "1.000001", "abc", "x", True, "2024-10-27 00:30:00", [3, 1],
         ["b"], '{"k": "v", "a": 3}', b"z" * 60),
    _row(9, 40, 2, 9, 1.5, "0.07", "99.990000", "Ab", "y,z", False, "2024-05-31 12:00:00", [1],
         ["a", "z"], '{"k": "w"}', b"\x10"),
]  # fmt: skip
STEPS: list[tuple[list[int], list[Row]]] = [
    ([], ROWS[:5]),
    ([2], [*ROWS[5:], ROWS[0]]),
    ([3, 5, 9], [ROWS[1], ROWS[3]]),
]
"""Three windows: the ids whose rows are deleted, and the rows that are inserted."""


def create(connection: Any, name: str = "t") -> None:
    columns = ", ".join(f"{column} {type_}" for column, (type_, _, _) in TYPES.items())
    connection.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
    connection.execute(f"CREATE TABLE {name} ({columns})")


def insert(connection: Any, rows: list[Row]) -> None:
    places = ", ".join(["%s"] * len(TYPES))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO t VALUES ({places})", rows)


def change(connection: Any, lake: Lake, deleted: list[int], inserted: list[Row]) -> None:
    """The same change in both."""
    if deleted:
        ids = ", ".join(map(str, deleted))
        connection.execute(f"DELETE FROM t WHERE id IN ({ids})")
        DeltaTable(lake.location("t")).delete(f"id IN ({ids})")
    insert(connection, inserted)
    columns = zip(*inserted, strict=True)
    arrays = [
        pa.array(values, type_[2]) for values, type_ in zip(columns, TYPES.values(), strict=True)
    ]
    write(lake, "t", pa.table(arrays, names=list(TYPES)))
