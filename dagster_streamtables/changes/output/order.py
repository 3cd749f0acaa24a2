"""The order of rows within a timestamp, as a reader asks for it, and sorting by it."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from dagster_streamtables.changes.output.names import DIFFS, column_of, is_name, unknown_column
from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation

_ORDERED = (
    types.is_null, types.is_boolean, types.is_integer, types.is_float32, types.is_float64,
    types.is_decimal, types.is_string, types.is_large_string, types.is_binary,
    types.is_large_binary, types.is_fixed_size_binary, types.is_date, types.is_time,
    types.is_timestamp, types.is_duration,
)  # fmt: skip


def is_ordered(type_: pa.DataType) -> bool:
    """Whether values of this type can be compared and sorted here."""
    return any(is_it(type_) for is_it in _ORDERED)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type in which a column is given out, which every reader of Arrow knows.

    delta-rs reads strings as views, which pyarrow cannot sort.
    """
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if types.is_string_view(type_):
        return pa.string()
    return pa.binary() if types.is_binary_view(type_) else type_


def check_ordered(schema: pa.Schema, column: str, purpose: str) -> None:
    """Refuse a column whose values cannot be compared.

    Args:
        purpose: What the column is wanted for: ``a key``.
    """
    type_ = schema.field(column).type
    if not is_ordered(type_):
        raise RefusedOperation(
            f'column "{column}" cannot be {purpose}',
            why=f"it is of type {type_}, whose values have no order",
            fix="choose another column, or compute one from it, in a SELECT: "
            "to_json(…), or a field of the struct",
        )


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The same values in one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return column if column.type.equals(type_) else column.cast(type_)


@dataclass(frozen=True)
class Term:
    """Sort by one column; among equals, by the next term."""

    column: str
    """A column of the relation; or ``WEIGHT``, which is the diff."""
    descending: bool = False
    nulls_first: bool = False


Given: TypeAlias = str | int | Term | Sequence[str | int | Term]
"""What a reader gives as an order: a term, or several."""


def order_terms(given: Given, columns: Sequence[str]) -> tuple[Term, ...]:
    """The terms of a reader's order.

    A term is ``k``, ``-v``, ``v DESC NULLS LAST``, the diff by its name, or an ordinal: 1 is the
    diff, 2 the first column. NULL comes after every value: last ascending, first descending.
    """
    terms = [given] if isinstance(given, str | int | Term) else given
    return tuple(_term(term, columns) for term in terms)


def whole_order(terms: Sequence[Term], schema: pa.Schema) -> tuple[Term, ...]:
    """The terms, and after them every other column and the diff, so that ties have an order.

    Columns whose values cannot be compared decide no tie.
    """
    named = {term.column for term in terms}
    rest = (field.name for field in schema if is_ordered(field.type))
    return (*terms, *(Term(name) for name in (*rest, WEIGHT) if name not in named))


def sorts_here(schema: pa.Schema, terms: Sequence[Term]) -> bool:
    """Whether rows can be sorted by these terms without Spark."""
    columns = (term.column for term in terms if term.column != WEIGHT)
    return all(is_ordered(schema.field(column).type) for column in columns)


def sort_indices(rows: pa.Table, terms: Sequence[Term]) -> pa.Array:
    """The numbers of the rows in order. Rows that no term tells apart keep theirs."""
    keys: list[tuple[pa.Array, str]] = []
    for term in terms:
        keys += _sort_keys(whole(rows.column(term.column)), term)
    if not keys:
        return pa.array(range(rows.num_rows), pa.uint64())
    if len(keys) == 1:
        return pc.array_sort_indices(keys[0][0], order=keys[0][1])
    # By number: pyarrow reads a name that begins with a dot or a bracket as a path.
    numbered = pa.table({str(number): values for number, (values, _) in enumerate(keys)})
    by = [(str(number), direction) for number, (_, direction) in enumerate(keys)]
    return pc.sort_indices(numbered, sort_keys=by)


def _sort_keys(values: pa.Array, term: Term) -> list[tuple[pa.Array, str]]:
    """The columns to sort by in place of a term.

    pyarrow puts all NULLs at one end, those of every column, and NaN beside them. So whether a
    value is NULL is a column of its own; and whether it is NaN, which is the greatest number.
    """
    direction = "descending" if term.descending else "ascending"
    keys: list[tuple[pa.Array, str]] = []
    if values.null_count:
        nulls = pc.is_null(values).cast(pa.int8())
        keys.append((nulls, "descending" if term.nulls_first else "ascending"))
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(values), False)
        keys += [(nan.cast(pa.int8()), direction)] if pc.any(nan).as_py() else []
    if not _is_constant(values):
        keys.append((values, direction))
    return keys


def _is_constant(values: pa.Array) -> bool:
    """Whether sorting by it changes nothing: as by the diffs of a snapshot, which are all 1."""
    if values.null_count == len(values):
        return True
    if not pa.types.is_integer(values.type) or values.null_count:
        return False
    ends = pc.min_max(values)
    return ends["min"] == ends["max"]


_SUFFIX = re.compile(r"(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.I | re.S)


def _term(given: str | int | Term, columns: Sequence[str]) -> Term:
    if isinstance(given, Term):
        return Term(_column(given.column, columns), given.descending, given.nulls_first)
    text = str(given).strip()
    if column_of(text, columns):  # a column may be called "-v", or "v desc"
        return Term(_column(text, columns))
    name, direction, nulls = _parts(text)
    descending = direction == "desc"
    if name.startswith("-") and not direction:
        name, descending = name[1:].strip(), True
    nulls_first = nulls == "first" if nulls else descending
    return Term(_column(name, columns), descending, nulls_first)


def _parts(text: str) -> tuple[str, str, str]:
    found = _SUFFIX.fullmatch(text)
    assert found  # the first part takes anything
    name, direction, nulls = found.groups(default="")
    return name, direction.lower(), nulls.lower()


def _column(name: str, columns: Sequence[str]) -> str:
    column = column_of(name, columns) or column_of(_unquote(name), columns)
    if column:
        return column
    if name == WEIGHT or name.lower() in DIFFS:
        return WEIGHT
    if re.fullmatch(r"\d+", name):
        return _by_ordinal(int(name), columns)
    if not is_name(_unquote(name)) and _unquote(name) == name:
        raise RefusedOperation(
            f'invalid ORDER BY within a timestamp: "{name}"',
            why="a term is a column, the diff, or an ordinal, with ASC or DESC, and "
            "NULLS FIRST or NULLS LAST; not an expression",
            fix="compute it as a column, in a SELECT, and order by that",
        )
    raise unknown_column(_unquote(name), columns)


def _by_ordinal(number: int, columns: Sequence[str]) -> str:
    if not 1 <= number <= len(columns) + 1:
        raise RefusedOperation(
            f"ORDER BY position {number} is not in the output",
            fix=f"1 is the diff; the columns are 2 to {len(columns) + 1}",
        )
    return WEIGHT if number == 1 else columns[number - 2]


def _unquote(name: str) -> str:
    quoted = len(name) > 2 and name[0] == name[-1] and name[0] in '`"'
    return name[1:-1].replace(name[0] * 2, name[0]) if quoted else name
