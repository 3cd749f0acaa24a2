"""Record batches → bytes, for a terminal, a file or a connection."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from dagster_streamtables.changes.output.value_text import (
    each,
    is_bytes,
    is_text,
    join_texts,
    json_texts,
    replace_where,
    texts,
)
from dagster_streamtables.errors import one_line


class Format(ABC):
    """One stream of bytes: `begin`, then `batch` for each batch, then `end`.

    What any of them returns may be sent at once: it ends with a whole row.
    """

    media_type: ClassVar[str]

    @abstractmethod
    def begin(self, schema: pa.Schema) -> bytes: ...

    @abstractmethod
    def batch(self, batch: pa.RecordBatch) -> bytes: ...

    def end(self) -> bytes:
        return b""


class NdjsonFormat(Format):
    """A JSON object for each row, on a line of its own, with its columns in their order."""

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
    """What ``COPY … FROM STDIN`` of PostgreSQL reads, in its text format."""

    media_type = "text/tab-separated-values; charset=utf-8"

    def begin(self, schema: pa.Schema) -> bytes:
        return b""

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
    """Aligned columns, for people. What would move the cursor of a terminal is escaped."""

    media_type = "text/plain; charset=utf-8"
    _WIDEST = 60
    """A longer value moves what follows on its line, and no other line."""

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
        # The header waits for the first rows, which say how wide the columns are.
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
    """The rows one after the other, each of its parts."""
    # Large strings, since a batch may come to more than 2 GiB.
    large = pa.large_string()
    whole = [p.cast(large) if isinstance(p, pa.Array) else pa.scalar(p, large) for p in parts]
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
    """Those that need it."""
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
