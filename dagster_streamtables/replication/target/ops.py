"""What becomes of the rows of a target, as a relation that one MERGE takes.

op, what to do; k…, the row to find; v…, its values; u…, whether the stored value stays. The names
of the target's columns cannot meet these: each is written with its alias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.arrow import plain_schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Op(IntEnum):
    INSERT = 0
    """A new row. It is looked for nowhere, so a key can leave one row and come with another."""
    UPDATE = 1
    DELETE = 2
    AGAIN = 3
    """A row that was deleted along with equal ones, and stays: in all columns of the target."""
    STORE = 4
    """A row to update, or to insert if there is none."""


@dataclass(frozen=True)
class OpShape:
    """Of one target, and of the operations in it."""

    stored: pa.Schema
    """All columns of the target."""
    match: Sequence[str]
    """The columns that tell rows apart."""
    values: Sequence[str]
    """The columns that are written."""
    new: Sequence[str]
    """Those of them that a new row has."""
    kept: frozenset[str] = frozenset()
    """Those of them whose stored value may stay."""

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        plain = plain_schema(self.stored)
        return pa.schema(
            [
                ("op", pa.int8()),
                *((f"k{i}", plain.field(name).type) for i, name in enumerate(self.match)),
                *((f"v{i}", plain.field(name).type) for i, name in enumerate(self.values)),
                *((f"u{i}", pa.bool_()) for i, name in enumerate(self.values) if name in self.kept),
            ]
        )

    def rows(
        self,
        op: Op,
        *,
        match: pa.Table | None = None,
        values: pa.Table | None = None,
        kept: Mapping[str, np.ndarray] | None = None,
    ) -> pa.Table:
        """Rows of the relation, from columns of the target."""
        import pyarrow as pa

        found: dict[str, Any] = {}
        for letter, names, rows in (("k", self.match, match), ("v", self.values, values)):
            for i, name in enumerate(names):
                if rows is not None and name in rows.column_names:
                    found[f"{letter}{i}"] = rows.column(name)
        for name, stays in (kept or {}).items():
            found[f"u{list(self.values).index(name)}"] = pa.array(stays)
        count = len(next(iter(found.values()))) if found else 0
        found["op"] = pa.array([int(op)] * count, pa.int8())
        columns = [
            found[field.name].cast(field.type)
            if field.name in found
            else pa.nulls(count, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)
