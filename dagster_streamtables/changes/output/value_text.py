"""Values as text, a column at a time: plainly, and as JSON."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types


def texts(values: pa.Array) -> pa.Array:
    """Each value as text; NULL stays NULL.

    Bytes are base64; times are those of ISO 8601, and instants in UTC, with a Z; what is nested is
    JSON.
    """
    type_ = values.type
    if is_text(type_):
        return values.cast(pa.string())
    if types.is_floating(type_):
        return _floats(values)
    if types.is_decimal(type_):
        return _decimals(values)
    if types.is_timestamp(type_):
        return _timestamps(values)
    if is_bytes(type_):
        return each(values, lambda value: b64encode(value).decode())
    if types.is_nested(type_):
        return _nested(values)
    if types.is_duration(type_):
        return each(values, _duration)
    return each(values, str) if types.is_interval(type_) else values.cast(pa.string())


def json_texts(values: pa.Array) -> pa.Array:
    """Each value as JSON; NULL is ``null``.

    Numbers are numbers, but decimals are strings, as most readers would make floats of them; so are
    NaN and the infinities, which JSON lacks.
    """
    type_ = values.type
    written = texts(values)
    if types.is_floating(type_):
        special = pc.invert(pc.is_finite(values))
        if pc.any(special).as_py():
            written = pc.if_else(special, join_texts('"', written, '"'), written)
    elif is_text(type_):
        written = join_texts('"', _escape_json(written), '"')
    elif not (types.is_integer(type_) or types.is_boolean(type_) or types.is_nested(type_)):
        written = join_texts('"', written, '"')  # digits, letters and signs: nothing to escape
    return pc.fill_null(written, "null")


def is_text(type_: pa.DataType) -> bool:
    return types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)


def is_bytes(type_: pa.DataType) -> bool:
    kinds = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return types.is_fixed_size_binary(type_) or any(is_it(type_) for is_it in kinds)


def each(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """Value by value: for types that are rare in large results."""
    return pa.array(
        [None if value is None else text(value) for value in values.to_pylist()], pa.string()
    )


def join_texts(*parts: str | pa.Array) -> pa.Array:
    """The parts of each row, one after the other; NULL where one is."""
    return pc.binary_join_element_wise(*parts, "")


def replace_where(values: pa.Array, mask: pa.Array, text: Callable[[str], str]) -> pa.Array:
    """The values, with those of the mask changed one by one."""
    mask = pc.fill_null(mask, False)
    changed = each(values.filter(mask), text)
    return pc.replace_with_mask(values, mask, changed) if len(changed) else values


def _floats(values: pa.Array) -> pa.Array:
    """The shortest text that is read as the same number; one with a dot, an `e` or a word."""
    names = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    written = values.cast(pa.string())
    if not pc.all(pc.is_finite(values)).as_py():
        special = pc.invert(pc.is_finite(values))
        written = replace_where(written, special, lambda text: names.get(text, text))
    digits = pc.match_substring_regex(written, r"^-?\d+$")
    return pc.if_else(digits, join_texts(written, ".0"), written)


def _decimals(values: pa.Array) -> pa.Array:
    """Never with an exponent, which pyarrow writes for small ones: ``0E-10``."""
    written = values.cast(pa.string())
    return replace_where(
        written, pc.match_substring(written, "E"), lambda text: format(Decimal(text), "f")
    )


def _timestamps(values: pa.Array) -> pa.Array:
    # Instants are stored in UTC, whatever their zone; without one they are written far faster.
    moments = values.view(pa.timestamp(values.type.unit))
    written = pc.replace_substring(moments.cast(pa.string()), " ", "T", max_replacements=1)
    return written if values.type.tz is None else join_texts(written, "Z")


def _duration(value: timedelta) -> str:
    """As in ISO 8601, in seconds, which readers do not round to months."""
    seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6)
    return f"PT{seconds:f}S"


def _escape_json(written: pa.Array) -> pa.Array:
    """What may stand between the quotes of a JSON string."""
    if not pc.any(pc.match_substring_regex(written, r'[\\"\x00-\x1f]')).as_py():
        return written
    escaped = pc.replace_substring(pc.replace_substring(written, "\\", "\\\\"), '"', '\\"')
    controls = pc.fill_null(pc.match_substring_regex(written, r"[\x00-\x1f]"), False)
    dumped = each(written.filter(controls), _escape_json_text)
    return pc.replace_with_mask(escaped, controls, dumped) if len(dumped) else escaped


def _escape_json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _nested(values: pa.Array) -> pa.Array:
    if types.is_struct(values.type):
        written = _structs(values)
    elif types.is_map(values.type):
        written = _maps(values)
    else:
        written = join_texts("[", _join_items(values, json_texts(values.flatten())), "]")
    return pc.if_else(values.is_valid(), written, pa.scalar(None, pa.string()))


def _structs(values: pa.Array) -> pa.Array:
    parts: list[str | pa.Array] = []
    for field, inner in zip(values.type, values.flatten(), strict=True):
        start = "," if parts else "{"
        parts += [start + json.dumps(field.name, ensure_ascii=False) + ":", json_texts(inner)]
    return join_texts(*parts, "}") if parts else pa.repeat("{}", len(values))


def _maps(values: pa.Array) -> pa.Array:
    type_ = values.type
    entry = pa.struct([("key", type_.key_type), ("value", type_.item_type)])
    lists = values.cast(pa.list_(entry))
    keys, items = lists.flatten().flatten()
    names = join_texts('"', _escape_json(texts(keys)), '"')
    return join_texts("{", _join_items(lists, join_texts(names, ":", json_texts(items))), "}")


def _join_items(lists: pa.Array, items: pa.Array) -> pa.Array:
    """The items of each list, of which these are the texts, separated by commas."""
    lengths = pc.if_else(lists.is_valid(), pc.list_value_length(lists), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pc.binary_join(pa.ListArray.from_arrays(offsets.cast(pa.int32()), items), ",")
