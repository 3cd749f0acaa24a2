"""Values as the server writes them → values of Arrow, a column at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast as typed

if TYPE_CHECKING:
    import pyarrow as pa

QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', flags=re.DOTALL)
ESCAPED = re.compile(r"\\(.)", flags=re.DOTALL)


def as_is(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    return text


def cast(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    return text.cast(arrow)


def booleans(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    return typed("Any", pc).equal(text, "t")


def bytes_of_hex(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    import pyarrow as pa

    values = text.to_pylist()
    return pa.array([None if v is None else bytes.fromhex(v[2:]) for v in values], arrow)


@dataclass(frozen=True)
class Arrays:
    """Arrays of one dimension, counted from 1: others have no equal."""

    element: Callable[[pa.Array], pa.Array]
    delimiter: str

    def __call__(self, text: pa.Array, arrow: pa.DataType) -> pa.Array:
        import pyarrow as pa

        offsets: list[int | None] = []
        elements: list[str | None] = []
        for value in text.to_pylist():
            offsets.append(None if value is None else len(elements))
            if value is not None:
                elements += elements_of(value, self.delimiter)
        ends = pa.array([*offsets, len(elements)], pa.int32())
        values = self.element(pa.array(elements, pa.string()))
        return pa.ListArray.from_arrays(ends, values).cast(arrow)


def elements_of(value: str, delimiter: str) -> Iterator[str | None]:
    r"""
    >>> list(elements_of('{1,NULL,"a \\"b\\",","NULL",""}', ","))
    ['1', None, 'a "b",', 'NULL', '']

    Raises:
        pyarrow.ArrowInvalid: It has other bounds, or more than one dimension.
    """
    import pyarrow as pa

    inner = value[1:-1]
    if not value.startswith("{") or inner.startswith("{"):
        raise pa.ArrowInvalid("an array of several dimensions, or one that is not counted from 1")
    if '"' not in inner:
        plain = inner.split(delimiter) if inner else []
        return (None if each == "NULL" else each for each in plain)
    return _quoted(inner, delimiter)


def _quoted(inner: str, delimiter: str) -> Iterator[str | None]:
    form = QUOTED if delimiter == "," else re.compile(QUOTED.pattern.replace(",{}", delimiter))
    for quoted, plain in form.findall(inner):
        if plain:
            yield None if plain == "NULL" else plain
        else:
            yield ESCAPED.sub(r"\1", quoted)
