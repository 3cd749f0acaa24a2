"""The options of the output: names of the leading columns, envelopes, order within a timestamp."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pyarrow import types

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.arrow import pa, pc


@dataclass(frozen=True)
class LeadingNames:
    """The names of the columns before those of the relation."""

    timestamp: str
    progressed: str
    diff: str
    state: str


NAMES = {
    "delta": LeadingNames("_timestamp", "_progressed", "_diff", "_state"),
    "materialize": LeadingNames("mz_timestamp", "mz_progressed", "mz_diff", "mz_state"),
}
"""In the manner of Delta's Change Data Feed, or as Materialize names them."""

DIFFS = frozenset(names.diff for names in NAMES.values())


def column_of(name: str, columns: Sequence[str]) -> str | None:
    """The column that a reader means; None if missing. As in Spark, case is ignored, unless two
    columns differ by case alone."""
    if name in columns:
        return name
    alike = [column for column in columns if column.casefold() == name.casefold()]
    if len(alike) > 1:
        raise RefusedOperation(
            f'column "{name}" is ambiguous', fix=f"write {_either(alike)}, in this case exactly"
        )
    return alike[0] if alike else None


def unknown_column(name: str, columns: Sequence[str]) -> RefusedOperation:
    near = difflib.get_close_matches(name, columns, n=3)
    there = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    return RefusedOperation(
        f'column "{name}" does not exist',
        fix=f"did you mean {_either(near)}?" if near else f"the columns are: {there}",
    )


def is_name(text: str) -> bool:
    """Whether it can be the name of a column; otherwise it is an expression."""
    return re.fullmatch(r"[^\W\d]\w*", text) is not None


def check_distinct(
    names: str, columns: Sequence[str], kept: Sequence[str], added: Sequence[str]
) -> None:
    """Refuse columns of the output that have the same name: the columns of the relation that are
    `kept` under their own names, and those that are `added`."""
    twice = next((name for name, times in Counter(columns).items() if times > 1), None)
    if twice is not None:
        raise RefusedOperation(
            f'the relation has two columns "{twice}"',
            fix=f"give one of them another name, in a SELECT: {_alias_hint(twice)}",
        )
    taken = {name.casefold() for name in added}
    alike = [name for name in kept if name.casefold() in taken]
    alike += [name for name in columns if name.casefold() == WEIGHT]
    if alike:
        other = next(each for each in NAMES if each != names)
        leads = alike[0].casefold() in vars(NAMES[names]).values()
        instead = f'choose names="{other}", or ' if leads else ""
        raise RefusedOperation(
            f'the relation already has a column "{alike[0]}"',
            why="a column of this name is added, to say when and how a row changed",
            fix=f"{instead}give the column another name, in a SELECT: {_alias_hint(alike[0])}",
        )


def _alias_hint(column: str) -> str:
    quoted = column.replace("`", "``")
    return f"SELECT …, `{quoted}` AS another_name FROM …"


def _either(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)


class Envelope:
    """A row for each key of which something changed, instead of a row for each changed row.

    The rows of a key in a timestamp are one of four cases: one inserted, one deleted, one replaced
    by another, or anything else, which violates the key.
    """

    inserted: ClassVar[str]
    """The state of a row that was inserted, and replaced none of its key."""
    sides: ClassVar[tuple[tuple[str, str], ...]]
    """The value columns: a prefix, and whether they are from `before` or `after` the change."""

    key: tuple[str, ...]

    def __init__(self, *key: str | Iterable[str]) -> None:
        """Args: key: The columns of the key, each by its name or all in a list."""
        named = ((each,) if isinstance(each, str) else each for each in key)
        self.key = tuple(column for columns in named for column in columns)
        _check_key(self.key)

    @property
    def states(self) -> tuple[str, str, str, str]:
        """The states of the four cases: inserted, replaced, deleted, anything else."""
        return self.inserted, "upsert", "delete", "key_violation"

    def key_in(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of the key, as the relation writes them."""
        key = tuple(_key_column(name, columns) for name in self.key)
        _check_key(key)
        return key

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.key == self.key  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.key))})"


class Upsert(Envelope):
    """For each key that changed, the row that it has now: ``Upsert("id")``.

    The state is ``upsert`` with the values, ``delete`` with NULLs, or ``key_violation`` with NULLs
    if more than one row of the key was inserted or deleted at once.
    """

    inserted = "upsert"
    sides = (("", "after"),)


class Debezium(Envelope):
    """For each key that changed, its row before and after: ``Debezium("id")``.

    The state is ``insert``, ``upsert``, ``delete``, or ``key_violation`` if more than one row of
    the key was inserted or deleted at once. Value columns are named ``before_…`` and ``after_…``.
    """

    inserted = "insert"
    sides = (("before_", "before"), ("after_", "after"))


ENVELOPES: dict[str, type[Envelope]] = {"upsert": Upsert, "debezium": Debezium}
"""By their names where options are text."""


def _check_key(key: tuple[str, ...]) -> None:
    if not key:
        raise RefusedOperation(
            "the key of an envelope has no column",
            why="rows that belong together are found by their key",
            fix='name one or more columns: Upsert("id")',
        )
    column, times = Counter(key).most_common(1)[0]
    if times > 1:
        raise RefusedOperation(
            f'column "{column}" is in the key more than once', fix="name each column once"
        )


def _key_column(name: str, columns: Sequence[str]) -> str:
    column = column_of(name, columns)
    if column:
        return column
    if not is_name(name):
        raise RefusedOperation(
            f'invalid key: "{name}" is not a column',
            why="a key is made of columns, not of expressions",
            fix="compute it as a column, in a SELECT, and name that",
        )
    raise unknown_column(name, columns)


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
    """The type of a column in the output, which every reader of Arrow knows: delta-rs reads strings
    as views, which pyarrow cannot sort."""
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if types.is_string_view(type_):
        return pa.string()
    return pa.binary() if types.is_binary_view(type_) else type_


def check_ordered(schema: pa.Schema, column: str, purpose: str) -> None:
    """Refuse a column whose values cannot be compared, for a purpose such as ``a key``."""
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


@dataclass(frozen=True)
class Term:
    """Sort by one column; among equals, by the next term."""

    column: str
    """A column of the relation; or ``WEIGHT``, which is the diff."""
    descending: bool = False
    nulls_first: bool = False


Given: TypeAlias = str | int | Term | Sequence[str | int | Term]
"""An order as a reader writes it: a term, or several."""


def order_terms(given: Given, columns: Sequence[str]) -> tuple[Term, ...]:
    """The terms of a reader's order.

    A term is ``k``, ``-v``, ``v DESC NULLS LAST``, the diff by its name, or an ordinal: 1 is the
    diff, 2 the first column. NULL comes after every value: last ascending, first descending.
    """
    terms = [given] if isinstance(given, str | int | Term) else given
    return tuple(_term(term, columns) for term in terms)


def whole_order(terms: Sequence[Term], schema: pa.Schema) -> tuple[Term, ...]:
    """The terms, then every other column with an order and the diff, which decide ties."""
    named = {term.column for term in terms}
    rest = (field.name for field in schema if is_ordered(field.type))
    return (*terms, *(Term(name) for name in (*rest, WEIGHT) if name not in named))


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
    """The columns to sort by instead of a term.

    pyarrow puts the NULLs of all columns at one end, and NaN next to them. So two more columns say
    whether a value is NULL, and whether it is NaN, which is the greatest number.
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
    """Whether sorting by it changes nothing: the diffs of a snapshot are all 1."""
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
    found = _SUFFIX.fullmatch(text)
    assert found  # the first part takes anything
    name, direction, nulls = found.groups(default="")
    direction = direction.lower()
    descending = direction == "desc"
    if name.startswith("-") and not direction:
        name, descending = name[1:].strip(), True
    nulls_first = nulls.lower() == "first" if nulls else descending
    return Term(_column(name, columns), descending, nulls_first)


def _column(name: str, columns: Sequence[str]) -> str:
    column = column_of(name, columns) or column_of(_unquote(name), columns)
    if column:
        return column
    if name == WEIGHT or name.lower() in DIFFS:
        return WEIGHT
    if re.fullmatch(r"\d+", name):
        number = int(name)
        if not 1 <= number <= len(columns) + 1:
            raise RefusedOperation(
                f"ORDER BY position {number} is not in the output",
                fix=f"1 is the diff; the columns are 2 to {len(columns) + 1}",
            )
        return WEIGHT if number == 1 else columns[number - 2]
    if not is_name(_unquote(name)) and _unquote(name) == name:
        raise RefusedOperation(
            f'invalid ORDER BY within a timestamp: "{name}"',
            why="a term is a column, the diff, or an ordinal, with ASC or DESC, and "
            "NULLS FIRST or NULLS LAST; not an expression",
            fix="compute it as a column, in a SELECT, and order by that",
        )
    raise unknown_column(_unquote(name), columns)


def _unquote(name: str) -> str:
    quoted = len(name) > 2 and name[0] == name[-1] and name[0] in '`"'
    return name[1:-1].replace(name[0] * 2, name[0]) if quoted else name
