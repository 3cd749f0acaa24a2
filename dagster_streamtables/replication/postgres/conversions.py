"""Types of PostgreSQL → types that a Delta table stores, where no value changes on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres import text_values
from dagster_streamtables.replication.postgres.type_catalog import ServerType

if TYPE_CHECKING:
    import pyarrow as pa

    OfText = Callable[[pa.Array, pa.DataType], pa.Array]

TEXTS = frozenset(
    ("text", "character varying", "character", "name", '"char"', "json", "jsonb", "uuid", "xml")
)
"""Types whose values are what the server writes."""
ALL_OTHERS = "*"
"""In place of a type: all that have no equal."""
NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
DIGITS = 38
"""Of the widest decimal of Delta."""


@dataclass(frozen=True)
class Conversion:
    arrow: pa.DataType
    _of_text: OfText

    def __call__(self, text: pa.Array) -> pa.Array:
        """The values of a column, from what the server writes for them.

        Raises:
            pyarrow.ArrowInvalid: The type has no such value.
        """
        return self._of_text(text, self.arrow)


class NoEqual(Exception):
    """A type has no equal that a Delta table stores; why is its text."""


@dataclass(frozen=True)
class Conversions:
    """For the types of one server, with what was chosen for those that have no equal."""

    types: Mapping[int, ServerType]
    chosen: Mapping[str, str]
    """By the name of a type or of a column: ``text``, or ``numeric(p,s)``."""

    def of(
        self, oid: int, modifier: int, column: str, outer_choice: str | None = None
    ) -> Conversion:
        """
        Args:
            oid: Of the column's type.
            modifier: Its precision and the like, encoded; -1 for none.
            column: With table and schema.
            outer_choice: What was chosen for the domain or the array that the type is in.

        Raises:
            NoEqual: The type has no equal, and nothing was chosen for it.
        """
        import pyarrow as pa

        try:
            return self._exactly(oid, modifier, column, outer_choice)
        except NoEqual:
            if self.chosen.get(ALL_OTHERS) != "text":
                raise
            return Conversion(pa.string(), text_values.as_is)

    def _exactly(
        self, oid: int, modifier: int, column: str, outer_choice: str | None
    ) -> Conversion:
        import pyarrow as pa

        kind = self.types.get(oid)
        if kind is None:
            raise NoEqual("its type has been dropped since")
        choice = self.chosen.get(column) or self.chosen.get(kind.name) or outer_choice
        if choice == "text":
            return Conversion(pa.string(), text_values.as_is)
        if kind.base:
            outer = kind.base_modifier if modifier < 0 else modifier
            return self.of(kind.base, outer, column, choice)
        if kind.element:
            element = self.of(kind.element, modifier, column, choice)
            arrays = text_values.Arrays(element, kind.delimiter)
            return Conversion(pa.list_(element.arrow), arrays)
        if kind.name == "numeric":
            return _numeric(choice, modifier)
        if choice is not None:
            raise NoEqual(f"{kind.name} is chosen to be {choice}, which it is not")
        return _plain(kind)


def _plain(kind: ServerType) -> Conversion:
    import pyarrow as pa

    if kind.is_enum or kind.name in TEXTS:
        return Conversion(pa.string(), text_values.as_is)
    found = _table().get(kind.name)
    if found is None:
        raise NoEqual(f"a Delta table has no {kind.name}")
    return found


def _table() -> Mapping[str, Conversion]:
    import pyarrow as pa

    plain = {
        "smallint": pa.int16(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "oid": pa.int64(),
        "real": pa.float32(),
        "double precision": pa.float64(),
        "date": pa.date32(),
        "timestamp without time zone": pa.timestamp("us"),
        "timestamp with time zone": pa.timestamp("us", "UTC"),
    }
    return {
        "boolean": Conversion(pa.bool_(), text_values.booleans),
        "bytea": Conversion(pa.binary(), text_values.bytes_of_hex),
        **{name: Conversion(arrow, text_values.cast) for name, arrow in plain.items()},
    }


def _numeric(choice: str | None, modifier: int) -> Conversion:
    import pyarrow as pa

    if choice is not None:
        found = NUMERIC.fullmatch(choice.replace(" ", ""))
        assert found is not None, "it was checked where it was chosen"
        precision, scale = int(found[1]), int(found[2])
    elif modifier < 0:
        raise NoEqual("a numeric without precision has any number of digits")
    else:
        precision, scale = _digits(modifier)
    # Values of numeric(3, 5) are below 0.01, and those of numeric(3, -2) end in two zeros.
    precision = max(precision, scale) - min(scale, 0)
    if precision > DIGITS:
        raise NoEqual(f"it has {precision} digits, and a decimal of Delta has up to {DIGITS}")
    return Conversion(pa.decimal128(precision, max(scale, 0)), text_values.cast)


def _digits(modifier: int) -> tuple[int, int]:
    """Precision and scale: 16 bits each, the scale in the lowest 11, signed since 15."""
    packed = modifier - 4
    scale = packed & 0x7FF
    return packed >> 16 & 0xFFFF, scale - 0x800 if scale & 0x400 else scale
