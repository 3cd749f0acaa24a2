"""Record batches → bytes: text, CSV, JSON lines, PostgreSQL's COPY, Arrow; a column at a time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

from pyarrow import types

from dagster_streamtables.errors import one_line
from dagster_streamtables.runtime.delta.arrow import pa, pc


class Format(ABC):
    """One stream of bytes: `begin`, then `batch` for each batch, then `end`. Each result ends with
    a whole row."""

    media_type: ClassVar[str]

    def begin(self, schema: pa.Schema) -> bytes:
        return b""

    @abstractmethod
    def batch(self, batch: pa.RecordBatch) -> bytes: ...

    def end(self) -> bytes:
        return b""


class NdjsonFormat(Format):
    """A line with a JSON object for each row, with the columns in order."""

    media_type = "application/x-ndjson"

    def begin(self, schema: pa.Schema) -> bytes:
        names = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        self._labels = [f"{',' if number else '{'}{name}:" for number, name in enumerate(names)]
        return b""

    def batch(self, batch: pa.RecordBatch) -> bytes:
        parts: list[str | pa.Array] = []
        for label, column in zip(self._labels, batch.columns, strict=True):
            parts += [label, json_texts(column)]
        return _bytes(*parts, "}\n")


class CsvFormat(Format):
    """With a header. NULL is empty, and an empty string is ``""``, as PostgreSQL writes them."""

    media_type = "text/csv; charset=utf-8"

    def begin(self, schema: pa.Schema) -> bytes:
        return (",".join(_in_quotes(pa.array(schema.names)).to_pylist()) + "\n").encode()

    def batch(self, batch: pa.RecordBatch) -> bytes:
        return _bytes(*_insert_separators([_csv(column) for column in batch.columns], ","), "\n")


class CopyFormat(Format):
    """The text format that ``COPY … FROM STDIN`` of PostgreSQL reads."""

    media_type = "text/tab-separated-values; charset=utf-8"

    def batch(self, batch: pa.RecordBatch) -> bytes:
        return _bytes(
            *_insert_separators([_to_copy_text(column) for column in batch.columns], "\t"), "\n"
        )


class ArrowFormat(Format):
    """A stream of Arrow's IPC format, without loss of any type."""

    media_type = "application/vnd.apache.arrow.stream"

    def begin(self, schema: pa.Schema) -> bytes:
        return schema.serialize().to_pybytes()

    def batch(self, batch: pa.RecordBatch) -> bytes:
        return batch.serialize().to_pybytes()

    def end(self) -> bytes:
        return b"\xff\xff\xff\xff\x00\x00\x00\x00"


class TextFormat(Format):
    """Aligned columns, for people. Characters that move the cursor of a terminal are escaped."""

    media_type = "text/plain; charset=utf-8"
    _WIDEST = 60
    """A longer value moves the rest of its line only."""

    def begin(self, schema: pa.Schema) -> bytes:
        self._names = [one_line(name) for name in schema.names]
        self._right = [_is_number(type_) for type_ in schema.types]
        self._widths = [min(len(name), self._WIDEST) for name in self._names]
        self._header = True
        return b""

    def batch(self, batch: pa.RecordBatch) -> bytes:
        columns = [_legible(column) for column in batch.columns]
        for number, column in enumerate(columns):
            longest = pc.max(pc.utf8_length(column)).as_py() or 0
            self._widths[number] = max(self._widths[number], min(longest, self._WIDEST))
        # The header waits for the first rows, which have the widths of the columns.
        return self._flush_header() + self._lines(columns)

    def end(self) -> bytes:
        return self._flush_header()

    def _flush_header(self) -> bytes:
        header, self._header = self._header, False
        return self._lines([pa.array([name]) for name in self._names]) if header else b""

    def _lines(self, columns: list[pa.Array]) -> bytes:
        padded: list[pa.Array] = []
        for column, width, right in zip(columns, self._widths, self._right, strict=True):
            is_last = len(padded) == len(columns) - 1
            pad = pc.utf8_lpad if right else pc.utf8_rpad
            padded.append(column if is_last and not right else pad(column, width))
        return _bytes(*_insert_separators(padded, "  "), "\n")


FORMATS: dict[str, type[Format]] = {
    "text": TextFormat,
    "csv": CsvFormat,
    "ndjson": NdjsonFormat,
    "copy": CopyFormat,
    "arrow": ArrowFormat,
}


def _bytes(*parts: str | pa.Array) -> bytes:
    """The rows one after the other, each made of its parts."""
    # Large strings, since a batch may exceed 2 GiB.
    large = pa.large_string()
    whole = [pa.scalar(p, large) if isinstance(p, str) else p.cast(large) for p in parts]
    rows = pc.binary_join_element_wise(*whole, pa.scalar("", large))
    length = pc.sum(pc.binary_length(rows)).as_py() or 0
    return rows.buffers()[2].slice(0, length).to_pybytes() if length else b""


def _insert_separators(columns: list[pa.Array], separator: str) -> list[str | pa.Array]:
    parts: list[str | pa.Array] = []
    for column in columns:
        parts += [separator, column] if parts else [column]
    return parts


def _csv(values: pa.Array) -> pa.Array:
    written = texts(values)
    if is_text(values.type) or types.is_nested(values.type):
        written = _in_quotes(written)
    return pc.fill_null(written, "")


def _in_quotes(written: pa.Array) -> pa.Array:
    """The texts, in quotes if they need them."""
    needed = pc.match_substring_regex(written, '[",\r\n]|^$')
    if not pc.any(needed).as_py():
        return written
    return pc.if_else(
        needed, join_texts('"', pc.replace_substring(written, '"', '""'), '"'), written
    )


_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def _to_copy_text(values: pa.Array) -> pa.Array:
    if types.is_boolean(values.type):
        written = pc.if_else(values, "t", "f")
    elif is_bytes(values.type):
        written = each(values, lambda value: f"\\\\x{value.hex()}")
    else:
        written = texts(values)
        if is_text(values.type) or types.is_nested(values.type):
            for character, escape in _ESCAPES:
                written = pc.replace_substring(written, character, escape)
    return pc.fill_null(written, "\\N")


def _legible(values: pa.Array) -> pa.Array:
    written = texts(values)
    if is_text(values.type) or types.is_nested(values.type):
        strange = pc.match_substring_regex(written, r"[^\x20-\x7e]")
        written = replace_where(written, strange, one_line)
    return pc.fill_null(written, "NULL")


def _is_number(type_: pa.DataType) -> bool:
    return types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_)


def texts(values: pa.Array) -> pa.Array:
    """Each value as text; NULL stays NULL. Bytes are base64; times are in ISO 8601, and instants in
    UTC, with a Z; nested values are JSON."""
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
    """Each value as JSON; NULL is ``null``. Decimals are strings, since most readers would make
    floats of them; so are NaN and the infinities, which JSON lacks."""
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
    """The texts of values, one by one: for types that are rare in large results."""
    return pa.array(
        [None if value is None else text(value) for value in values.to_pylist()], pa.string()
    )


def join_texts(*parts: str | pa.Array) -> pa.Array:
    """The parts of each row, one after the other; NULL if one is."""
    return pc.binary_join_element_wise(*parts, "")


def replace_where(values: pa.Array, mask: pa.Array, text: Callable[[str], str]) -> pa.Array:
    """The values, changed one by one where the mask is true."""
    mask = pc.fill_null(mask, False)
    changed = each(values.filter(mask), text)
    return pc.replace_with_mask(values, mask, changed) if len(changed) else values


def _floats(values: pa.Array) -> pa.Array:
    """The shortest text of the same number; it has a dot, an `e` or a word."""
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
    """The texts between the quotes of JSON strings."""
    if not pc.any(pc.match_substring_regex(written, r'[\\"\x00-\x1f]')).as_py():
        return written
    escaped = pc.replace_substring(pc.replace_substring(written, "\\", "\\\\"), '"', '\\"')
    controls = pc.fill_null(pc.match_substring_regex(written, r"[\x00-\x1f]"), False)
    dumped = each(written.filter(controls), lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
    return pc.replace_with_mask(escaped, controls, dumped) if len(dumped) else escaped


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
    """The items of each list, separated by commas; `items` are the texts of all."""
    lengths = pc.if_else(lists.is_valid(), pc.list_value_length(lists), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pc.binary_join(pa.ListArray.from_arrays(offsets.cast(pa.int32()), items), ",")
