"""The published columns of a table in its target: found by name, with the target's types."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.model.errors import TargetProblem
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.replication.target.casts import Inexact, cast, castable
from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.engine import filled

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 100
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Length:
    """Of the texts in a column."""

    characters: int
    is_exact: bool
    """CHAR pads what is shorter, so that it is another text."""

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
    """Those that are not NULL."""
    partitions: frozenset[str] = frozenset()
    lengths: Mapping[str, Length] = field(default_factory=dict[str, Length])
    """Of those that are CHAR or VARCHAR."""

    @property
    def published(self) -> list[str]:
        return self.table.schema.names

    @property
    def identity(self) -> list[str]:
        """The columns that tell rows apart: all that are published, if none are named."""
        return self.published if self.table.identity is None else [*self.table.identity]

    @property
    def plain_identity(self) -> list[str]:
        """Those of the identity by which an engine finds rows: without nesting."""
        import pyarrow as pa

        stored = self.stored
        return [n for n in self.identity if not pa.types.is_nested(stored.field(n).type)]

    def schema(self, names: Iterable[str]) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([self.stored.field(name) for name in names])

    def cast(self, names: Sequence[str], values: Sequence[pa.ChunkedArray]) -> pa.Table:
        """Values of published columns, in the target's types.

        Raises:
            TargetProblem: The target does not take one of them.
        """
        import pyarrow as pa

        columns = [self._cast(name, each) for name, each in zip(names, values, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.schema(names))

    def _cast(self, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        values = values.cast(plain_schema(pa.schema([(name, values.type)])).field(0).type)
        wanted = self.stored.field(name).type
        try:
            found = cast(values, wanted)
        except Inexact as error:
            value = repr(values[error.index].as_py())
            why = f"its type there is {wanted}, which has no equal value; nothing was applied"
            raise self._not_taken(name, value, why) from None
        self._require_length(name, found)
        divides = name in self.partitions and pa.types.is_string(wanted)
        if divides and pc.any(pc.equal(found, "")).as_py():
            why = "it partitions the table, and the empty text is NULL there; nothing was applied"
            raise self._not_taken(name, "''", why)
        return found

    def _require_length(self, name: str, found: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        length = self.lengths.get(name)
        if length is None or not pa.types.is_string(found.type):
            return
        differs = pc.not_equal if length.is_exact else pc.greater
        wrong = pc.index(differs(pc.utf8_length(found), length.characters), True).as_py()
        if wrong >= 0:
            why = f"its type there is {length}, which has no equal value; nothing was applied"
            raise self._not_taken(name, repr(found[wrong].as_py()), why)

    def _not_taken(self, name: str, value: str, why: str) -> TargetProblem:
        return TargetProblem(
            f'column "{name}" of the target of "{self.table.name}" '
            f"does not take the value {value[:_SHOWN]}",
            where=self.location,
            why=why,
            fix="give the column a wider type in the target; or drop the target, and let a copy "
            f"create it: {copy_command(self.table.name)}; or change the value",
        )

    def require_values(self, rows: pa.Table) -> None:
        """
        Raises:
            TargetProblem: A column that is not NULL in the target is NULL in a row.
        """
        for name in self.required.intersection(rows.column_names):
            if rows.column(name).null_count:
                raise TargetProblem(
                    f'column "{name}" of the target of "{self.table.name}" does not take NULL',
                    where=self.location,
                    why="it is NOT NULL there, and a published row has no value; "
                    "nothing was applied",
                    fix="drop the constraint of the target, or give the published row a value",
                )


def missing_columns(log: TableLog, table: PublishedTable) -> list[pa.Field]:
    """The published columns that a target lacks."""
    there = log.columns
    return [each for each in plain_schema(table.schema) if each.name not in there]


def copy_command(table: str) -> str:
    """What copies a table again, to be pasted once NAME is the name of the replication."""
    return shlex.join(["streamtables", "replications", "copy", "NAME", table])


def columns_of(log: TableLog, table: PublishedTable, *, retyped: bool = False) -> Columns:
    """
    Args:
        log: Of the target.
        table: The published table.
        retyped: Whether columns get the published types that take no value of these, since all rows
            are replaced.

    Raises:
        TargetProblem: The target lacks a published column, or its type takes no value of it; or it
            has another column without which there is no row.
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
        stored = _retyped(stored, table, log.partitions)
    for each in plain_schema(table.schema):
        _require_castable(log, table, each, stored.field(each.name).type)
    required = frozenset(each["name"] for each in log.fields if not each["nullable"])
    _require_optional(log, table, required - set(table.schema.names) - filled(log))
    partitions = frozenset(log.partitions)
    return Columns(table, log.location, stored, required, partitions, lengths_in(log))


def _retyped(stored: pa.Schema, table: PublishedTable, fixed: Collection[str]) -> pa.Schema:
    import pyarrow as pa

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
    return {name: length for name, length in map(_length, log.fields) if length is not None}


def _length(field: Mapping[str, Any]) -> tuple[str, Length | None]:
    told = str((field.get("metadata") or {}).get(_CHAR, "")).lower()
    found = re.fullmatch(r"(var)?char\((\d+)\)", told)
    return field["name"], found and Length(int(found[2]), is_exact=found[1] is None)


def _require_castable(
    log: TableLog, table: PublishedTable, field: pa.Field, wanted: pa.DataType
) -> None:
    if not castable(field.type, wanted):
        raise TargetProblem(
            f'column "{field.name}" of the target of "{table.name}" cannot take what is published',
            where=log.location,
            why=f"its type there is {wanted}, and the published one {field.type}",
            fix="let a copy give the column of the target the published type: "
            f"{copy_command(table.name)}; or change it to a type that holds the published texts",
        )


def _require_optional(log: TableLog, table: PublishedTable, names: Iterable[str]) -> None:
    for name in sorted(names):
        raise TargetProblem(
            f'the target of "{table.name}" requires a column "{name}" that is not published',
            where=log.location,
            why="it is NOT NULL there, and a new row would have no value",
            fix="drop the constraint of the target, or publish the column",
        )
