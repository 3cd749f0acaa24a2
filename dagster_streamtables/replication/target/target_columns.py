"""The published columns of a table in its target: found by name, cast exactly to its types.

PostgreSQL replicates by texts, so a column of type text takes any value as PostgreSQL writes it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dagster_streamtables.errors import TargetProblem
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.runtime.delta.arrow import np, pa, pc, plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.commit_target import optional_columns


def texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of any type without nesting, as texts."""

    type_ = values.type
    if pa.types.is_boolean(type_):
        return pc.if_else(values, "t", "f")
    if pa.types.is_timestamp(type_):
        return _times(values)
    if pa.types.is_floating(type_):
        return _each(values, _number if pa.types.is_float64(type_) else _single)
    if pa.types.is_decimal(type_):
        return _each(values, lambda value: format(value, "f"))
    if pa.types.is_binary(type_):
        return _each(values, lambda value: "\\x" + value.hex())
    return values.cast(pa.string())


def _each(values: pa.ChunkedArray, text: Any) -> pa.ChunkedArray:
    found = [None if value is None else text(value) for value in values.to_pylist()]
    return pa.chunked_array([pa.array(found, pa.string())])


def _times(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without trailing zeros; in UTC if they have a time zone."""

    plain = values.cast(pa.timestamp("us")).cast(pa.string())
    found = pc.replace_substring_regex(plain, r"(\.\d*?)0+$", r"\1")
    found = pc.replace_substring_regex(found, r"\.$", "")
    if values.type.tz is None:
        return found
    return pc.binary_join_element_wise(found, pa.scalar("+00", pa.string()), "")


def _number(value: float, digits: int = 15) -> str:
    """The shortest digits that give the number back.

    >>> [_number(x) for x in (0.1, 1.0, -0.0, 1e15, 123456.5, 1e-5, 1.25e-7)]
    ['0.1', '1', '-0', '1e+15', '123456.5', '1e-05', '1.25e-07']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted()
    if -4 <= power < digits:
        return format(exact, "f")
    return f"{exact.scaleb(-power):f}e{power:+03d}"


def _single(value: float) -> str:

    return _number(float(str(np.float32(value))), 6)


_INTO = {
    "integer": {"integer", "decimal", "float", "text"},
    "decimal": {"integer", "decimal", "float", "text"},
    "float": {"integer", "decimal", "float", "text"},
    "boolean": {"boolean", "text"},
    "date": {"date", "time", "text"},
    "time": {"date", "time", "text"},
    "bytes": {"bytes", "text"},
    "text": {"integer", "decimal", "float", "date", "time", "text"},
}
"""Types → types that take their values, written as text in PostgreSQL."""


class Inexact(Exception):
    """A value has no equal one in the other type."""

    def __init__(self, index: int) -> None:
        self.index = index


def castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether some values of a type have equal ones in another."""
    return given.equals(wanted) or _kind(wanted) in _INTO.get(_kind(given), ())


def cast(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Raise `Inexact` if a value has no equal one of the wanted type."""
    if values.type.equals(wanted):
        return values
    if pa.types.is_string(wanted):
        return texts(values)
    found = _cast(values, wanted)
    if found is None:
        raise Inexact(_first_inexact(values, wanted))
    return found


def _cast(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    try:
        if pa.types.is_decimal(values.type) and pa.types.is_floating(wanted):
            return _floats(values, wanted)
        found = _through_decimals(values, wanted)
        same = pa.types.is_string(values.type) or _equal(
            _through_decimals(found, values.type), values
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return found if same else None


def _through_decimals(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Arrow casts integers only to decimals that hold all of their type."""
    if pa.types.is_integer(values.type) and pa.types.is_decimal(wanted):
        values = values.cast(pa.decimal128(38, 0))
    return values.cast(wanted)


def _floats(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    """Decimals whose digits are those that the float is written with."""
    given = values.to_pylist()
    found = pa.chunked_array([pa.array([None if v is None else float(v) for v in given], wanted)])
    shown = texts(found).to_pylist()
    same = all(v is None or Decimal(text) == v for v, text in zip(given, shown, strict=True))
    return found if same else None


def _equal(found: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:

    if pa.types.is_floating(values.type):
        differs = pc.and_(pc.not_equal(found, values), pc.invert(pc.is_nan(values)))
        return not pc.any(differs).as_py()
    return found.equals(values)


def _first_inexact(values: pa.ChunkedArray, wanted: pa.DataType) -> int:
    """Search by halves: the first that cannot be cast has it."""
    first, count = 0, len(values)
    while count > 1:
        half = count // 2
        if _cast(values.slice(first, half), wanted) is None:
            count = half
        else:
            first, count = first + half, count - half
    return first


def _kind(type_: pa.DataType) -> str:
    kinds = {
        "integer": pa.types.is_integer,
        "decimal": pa.types.is_decimal,
        "float": pa.types.is_floating,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date,
        "time": pa.types.is_timestamp,
        "bytes": pa.types.is_binary,
        "text": pa.types.is_string,
    }
    return next((kind for kind, is_ in kinds.items() if is_(type_)), "")


_SHOWN = 100
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Length:
    """The length of the texts in a column."""

    characters: int
    is_exact: bool
    """CHAR pads shorter texts, which changes them."""

    def __str__(self) -> str:
        return f"{'CHAR' if self.is_exact else 'VARCHAR'}({self.characters})"


@dataclass(frozen=True)
class Columns:
    """The columns of a target that take what is published."""

    table: PublishedTable
    location: str
    stored: pa.Schema
    """All columns of the target, with plain types."""
    required: frozenset[str]
    """The NOT NULL columns."""
    partitions: frozenset[str] = frozenset()
    lengths: Mapping[str, Length] = field(default_factory=dict[str, Length])
    """Of the CHAR and VARCHAR columns."""

    @property
    def source_columns(self) -> list[str]:
        return self.table.schema.names

    @property
    def identity(self) -> list[str]:
        """The columns that identify a row: all published ones, if none are named."""
        return [*self.table.key_columns]

    @property
    def plain_identity(self) -> list[str]:
        """The columns of the identity by which an engine finds rows: without nesting."""
        stored = self.stored
        return [n for n in self.identity if not pa.types.is_nested(stored.field(n).type)]

    def schema(self, names: Iterable[str]) -> pa.Schema:
        return pa.schema([self.stored.field(name) for name in names])

    def cast(self, names: Sequence[str], values: Sequence[pa.ChunkedArray]) -> pa.Table:
        """Values of published columns, in the target's types.

        Raises:
            TargetProblem: The target does not take one of them.
        """
        columns = [self._cast(name, each) for name, each in zip(names, values, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.schema(names))

    def cast_rows(self, batch: pa.RecordBatch) -> pa.Table:
        """Published rows, in the target's types; see `cast`."""
        rows = pa.Table.from_batches([batch]).select(self.source_columns)
        return self.cast(self.source_columns, rows.columns)

    def _cast(self, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:

        values = values.cast(plain_schema(pa.schema([(name, values.type)])).field(0).type)
        wanted = self.stored.field(name).type
        try:
            found = cast(values, wanted)
        except Inexact as error:
            value = repr(values[error.index].as_py())
            why = f"its type there is {wanted}, which has no equal value; nothing was applied"
            raise self._value_problem(name, value, why) from None
        self._require_length(name, found)
        divides = name in self.partitions and pa.types.is_string(wanted)
        if divides and pc.any(pc.equal(found, "")).as_py():
            why = "it partitions the table, and the empty text is NULL there; nothing was applied"
            raise self._value_problem(name, "''", why)
        return found

    def _require_length(self, name: str, found: pa.ChunkedArray) -> None:

        length = self.lengths.get(name)
        if length is None or not pa.types.is_string(found.type):
            return
        differs = pc.not_equal if length.is_exact else pc.greater
        wrong = pc.index(differs(pc.utf8_length(found), length.characters), True).as_py()
        if wrong >= 0:
            why = f"its type there is {length}, which has no equal value; nothing was applied"
            raise self._value_problem(name, repr(found[wrong].as_py()), why)

    def _value_problem(self, name: str, value: str, why: str) -> TargetProblem:
        return TargetProblem(
            f'column "{name}" of the target of "{self.table.name}" '
            f"does not take the value {value[:_SHOWN]}",
            where=self.location,
            why=why,
            fix="give the column a wider type in the target; or drop the target, and let a copy "
            f"create it: {copy_command(self.table.name)}; or change the value",
        )

    def require_values(self, rows: pa.Table) -> None:
        """Raise `TargetProblem` if a NOT NULL column of the target is NULL in a row."""
        for name in self.required.intersection(rows.column_names):
            if rows.column(name).null_count:
                raise TargetProblem(
                    f'column "{name}" of the target of "{self.table.name}" does not take NULL',
                    where=self.location,
                    why="it is NOT NULL there, and a published row has no value; "
                    "nothing was applied",
                    fix="drop the constraint of the target, or give the published row a value",
                )


def whole_rows(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Rows in all columns of the target, NULL in the missing ones."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def missing_columns(log: TableLog, table: PublishedTable) -> list[pa.Field]:
    """The published columns that a target lacks."""
    there = log.columns
    return [each for each in plain_schema(table.schema) if each.name not in there]


def copy_command(table: str) -> str:
    """The command that copies a table again, to be pasted once NAME is the name of the
    replication."""
    return shlex.join(["streamtables", "replications", "copy", "NAME", table])


def columns_of(log: TableLog, table: PublishedTable, *, retyped: bool = False) -> Columns:
    """
    Args:
        retyped: Whether columns whose types do not take the published values get the published
            types, since all rows are replaced.

    Raises:
        TargetProblem: The target lacks a published column, or its type takes no value of it; or it
            has another column that must not be NULL.
    """
    missing = [each.name for each in missing_columns(log, table)]
    if missing:
        raise TargetProblem(
            f'the target of "{table.name}" is missing replicated column "{missing[0]}"',
            where=log.location,
            why="what is published goes into columns of exactly the same names",
            fix="add the column to the target; or let the replication do that: streamtables "
            "replications alter NAME --add-columns; or publish the table without it",
        )
    stored = plain_schema(log.arrow_schema)
    if retyped:
        stored = _retype_schema(stored, table, log.partitions)
    for each in plain_schema(table.schema):
        wanted = stored.field(each.name).type
        if not castable(each.type, wanted):
            raise TargetProblem(
                f'column "{each.name}" of the target of "{table.name}" cannot store published '
                "values",
                where=log.location,
                why=f"its type there is {wanted}, and the published one {each.type}",
                fix="let a copy give the column of the target the published type: "
                f"{copy_command(table.name)}; or change it to a type that holds the published "
                "texts",
            )
    required = frozenset(each["name"] for each in log.fields if not each["nullable"])
    for name in sorted(required - set(table.schema.names) - optional_columns(log)):
        raise TargetProblem(
            f'the target of "{table.name}" requires a column "{name}" that is not published',
            where=log.location,
            why="it is NOT NULL there, and a new row would have no value",
            fix="drop the constraint of the target, or publish the column",
        )
    partitions = frozenset(log.partitions)
    return Columns(table, log.location, stored, required, partitions, lengths_in(log))


def _retype_schema(stored: pa.Schema, table: PublishedTable, fixed: Collection[str]) -> pa.Schema:
    for each in plain_schema(table.schema):
        index = stored.get_field_index(each.name)
        known = stored.field(index)
        # Texts that are dates so far need not be dates in the future.
        is_text = pa.types.is_string(each.type) and not pa.types.is_string(known.type)
        if each.name not in fixed and (is_text or not castable(each.type, known.type)):
            stored = stored.set(index, known.with_type(each.type))
    return stored


def lengths_in(log: TableLog) -> dict[str, Length]:
    """Column → its length, if it is CHAR or VARCHAR."""
    lengths: dict[str, Length] = {}
    for column in log.fields:
        told = str((column.get("metadata") or {}).get(_CHAR, "")).lower()
        if found := re.fullmatch(r"(var)?char\((\d+)\)", told):
            lengths[column["name"]] = Length(int(found[2]), is_exact=found[1] is None)
    return lengths
