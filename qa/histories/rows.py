"""Rows for a table of any schema, drawn from few ordinary values and all extreme ones."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import Schema

Field = Mapping[str, Any]
"""A column, as the schema in a Delta log has it."""

_WHOLE = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_FLOATS = (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, 5e-324)
_DATES = ("0001-01-01", "1582-10-04", "1582-10-10", "1582-10-15", "1677-09-20", "1970-01-01",
          "2262-04-12", "9999-12-31")  # fmt: skip
_MOMENTS = (
    "0001-01-01T00:00:00", "1582-10-12T12:00:00", "1600-02-29T12:00:00",
    "1677-09-21T00:12:43.145224", "1969-12-31T23:59:59.999999", "2020-03-29T01:30:00",
    "2020-03-29T02:30:00", "2020-10-25T02:30:00", "2262-04-11T23:47:16.854776",
    "2300-01-01T00:00:00", "9999-12-31T23:59:59.999999",
)  # fmt: skip
_TEXTS = ("", "\ufffd", "a", "a ", " a", "A", "ab", "ä", "a\u0308", "🦄", "it's", 'a"b', "a\\b",
          "NULL", "\n", "%", "`orders`")  # fmt: skip
_BYTES = (b"", b"\x00", b"a", b"\xff\xfe", b"a\x00")
_SPECIAL = ("__CHAR_VARCHAR_TYPE_STRING",)
WITHOUT: set[str] = set()
"""Extreme values that are left out, to look for what they would hide: ``minus-zero``,
``old-moments``."""


def arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """The columns as Arrow has them, without what Delta alone knows of them."""
    text = json.dumps({"type": "struct", "fields": list(fields)})
    known = pa.schema(Schema.from_json(text).to_arrow())
    return pa.schema([(field.name, field.type) for field in known])


def some_rows(random: Random, fields: Sequence[Field], count: int) -> pa.Table:
    """Rows of these columns; some of them are there twice."""
    rows = [{f["name"]: value(random, f) for f in fields} for _ in range(count)]
    rows += [row for row in rows if random.random() < 0.2]
    return pa.Table.from_pylist(rows, arrow_schema(fields))


def value(random: Random, field: Field) -> Any:
    """A value for a column. Of keys and groups there are few, so that rows meet."""
    name = str(field["name"])
    if field["nullable"] and random.random() < 0.1:
        return None
    if name in ("id", "g") and field["type"] in _WHOLE:
        return random.randrange(8 if name == "id" else 4)
    declared = str(field.get("metadata", {}).get(_SPECIAL[0], ""))
    if declared:
        return random.choice(_TEXTS)[: _digits(declared)[0]]
    return _value(random, field["type"])


def _value(random: Random, kind: Any) -> Any:
    if not isinstance(kind, str):
        return _nested(random, kind)
    if kind in _WHOLE:
        most = 2 ** (_WHOLE[kind] - 1)
        return random.choice((0, 1, 2, -1, most - 1, -most))
    if kind.startswith("decimal"):
        return _decimal(random, *_digits(kind))
    match kind:
        case "float" | "double":
            found = random.choice(_FLOATS)
            if "minus-zero" in WITHOUT and found == 0:
                return 0.0
            return found if kind == "double" or abs(found) not in (1e300, 5e-324) else 2.5
        case "string":
            return random.choice(_TEXTS)
        case "binary":
            return random.choice(_BYTES)
        case "boolean":
            return random.random() < 0.5
        case "date":
            return date.fromisoformat(random.choice(_DATES))
        case "timestamp":
            return _moment(random).replace(tzinfo=UTC)
        case _:
            return _moment(random)


def _moment(random: Random) -> datetime:
    found = random.choice(_MOMENTS)
    if "old-moments" in WITHOUT and found[:2] not in ("19", "20"):
        found = _MOMENTS[4]
    return datetime.fromisoformat(found)


def _nested(random: Random, kind: Any) -> Any:
    match kind["type"]:
        case "struct":
            return {f["name"]: value(random, f) for f in kind["fields"]}
        case "array":
            few = range(random.randrange(3))
            return [None if random.random() < 0.1 else _value(random, kind["elementType"])
                    for _ in few]  # fmt: skip
        case _:
            keys = random.sample(("a", "b", ""), random.randrange(3))
            return [(key, _value(random, kind["valueType"])) for key in keys]


def _decimal(random: Random, precision: int, scale: int) -> decimal.Decimal:
    most = 10**precision - 1
    # Extremes are rare enough that a sum of them stays in its type.
    unscaled = random.choice((0, 1, -1, 150, 10**scale, -(10**scale), most, -most))
    with decimal.localcontext(decimal.Context(prec=40)):
        return decimal.Decimal(unscaled).scaleb(-scale)


def _digits(declared: str) -> tuple[int, int]:
    """The numbers of ``decimal(10,2)``, ``char(5)``."""
    numbers = [int(each) for each in declared.partition("(")[2].rstrip(")").split(",")]
    return numbers[0], numbers[1] if len(numbers) > 1 else 0
