"""Types of PostgreSQL → types that a Delta table stores, where no value changes on the way.

For types that have no equal in a Delta table, the user chooses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast as typed

import psycopg

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.delta.arrow import pa, pc

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection


QUERY = """
    WITH RECURSIVE needed AS (
        SELECT t.* FROM pg_type t WHERE t.oid = ANY(%s::oid[])
        UNION
        SELECT t.* FROM needed n JOIN pg_type t ON t.oid = n.typbasetype
            OR t.oid = n.typelem AND n.typinput = 'array_in'::regproc
    )
    SELECT oid::int8, format_type(oid, NULL), typtype = 'e', typbasetype::int8, typtypmod,
        CASE WHEN typinput = 'array_in'::regproc THEN typelem::int8 ELSE 0 END, typdelim
    FROM needed
"""


@dataclass(frozen=True)
class ServerType:
    name: str
    """As SQL writes it, with its schema unless it is PostgreSQL's own: ``integer``."""
    is_enum: bool = False
    base: int = 0
    """The type that a domain restricts."""
    base_modifier: int = -1
    element: int = 0
    """The type of an array's elements."""
    delimiter: str = ","


def types_of(connection: Connection, oids: Collection[int]) -> Mapping[int, ServerType]:
    """The types, and those that they consist of. Dropped types are missing."""
    rows = connection.execute(QUERY, [list(oids)]).fetchall()
    return {oid: ServerType(*rest) for oid, *rest in rows}


QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', flags=re.DOTALL)
ESCAPED = re.compile(r"\\(.)", flags=re.DOTALL)


def booleans(text: pa.Array) -> pa.Array:
    return typed("Any", pc).equal(text, "t")


def bytes_of_hex(text: pa.Array) -> pa.Array:
    values = text.to_pylist()
    return pa.array([None if v is None else bytes.fromhex(v[2:]) for v in values], pa.binary())


@dataclass(frozen=True)
class Arrays:
    """Arrays of one dimension, counted from 1: others have no equal."""

    element: Conversion
    delimiter: str

    def __call__(self, text: pa.Array) -> pa.Array:
        offsets: list[int | None] = []
        elements: list[str | None] = []
        for value in text.to_pylist():
            offsets.append(None if value is None else len(elements))
            if value is not None:
                elements += elements_of(value, self.delimiter)
        ends = pa.array([*offsets, len(elements)], pa.int32())
        values = self.element(pa.array(elements, pa.string()))
        return pa.ListArray.from_arrays(ends, values).cast(pa.list_(self.element.arrow))


def elements_of(value: str, delimiter: str) -> Iterator[str | None]:
    r"""
    >>> list(elements_of('{1,NULL,"a \\"b\\",","NULL",""}', ","))
    ['1', None, 'a "b",', 'NULL', '']

    Raises:
        pyarrow.ArrowInvalid: It has other bounds, or more than one dimension.
    """
    inner = value[1:-1]
    if not value.startswith("{") or inner.startswith("{"):
        raise pa.ArrowInvalid("an array of several dimensions, or one that is not counted from 1")
    if '"' not in inner:
        plain = inner.split(delimiter) if inner else []
        return (None if each == "NULL" else each for each in plain)
    return _unquote_elements(inner, delimiter)


def _unquote_elements(inner: str, delimiter: str) -> Iterator[str | None]:
    form = QUOTED if delimiter == "," else re.compile(QUOTED.pattern.replace(",{}", delimiter))
    for quoted, plain in form.findall(inner):
        if plain:
            yield None if plain == "NULL" else plain
        else:
            yield ESCAPED.sub(r"\1", quoted)


TEXTS = frozenset(
    ("text", "character varying", "character", "name", '"char"', "json", "jsonb", "uuid", "xml")
)
"""Types whose values are what the server writes."""
ALL_OTHERS = "*"
"""Instead of a type: all that have no equal."""
CHOICE = re.compile(r"text|numeric\((\d+),(\d+)\)")
DIGITS = 38
"""The digits of Delta's widest decimal."""


@dataclass(frozen=True)
class Conversion:
    arrow: pa.DataType
    _of_text: Callable[[pa.Array], pa.Array] | None = None
    """None if Arrow casts the texts."""

    def __call__(self, text: pa.Array) -> pa.Array:
        """The values of a column, from the texts of the server.

        Raises:
            pyarrow.ArrowInvalid: The type has no such value.
        """
        return text.cast(self.arrow) if self._of_text is None else self._of_text(text)


AS_TEXT = Conversion(pa.string())
PLAIN = {
    "boolean": Conversion(pa.bool_(), booleans),
    "bytea": Conversion(pa.binary(), bytes_of_hex),
    "smallint": Conversion(pa.int16()),
    "integer": Conversion(pa.int32()),
    "bigint": Conversion(pa.int64()),
    "oid": Conversion(pa.int64()),
    "real": Conversion(pa.float32()),
    "double precision": Conversion(pa.float64()),
    "date": Conversion(pa.date32()),
    "timestamp without time zone": Conversion(pa.timestamp("us")),
    "timestamp with time zone": Conversion(pa.timestamp("us", "UTC")),
}


class NoEqual(Exception):
    """A type has no equal that a Delta table stores; why is its text."""


@dataclass(frozen=True)
class Conversions:
    """For the types of one server, with the choices for those that have no equal."""

    types: Mapping[int, ServerType]
    chosen: Mapping[str, str]
    """By the name of a type or of a column: ``text``, or ``numeric(p,s)``."""

    def of(
        self, oid: int, modifier: int, column: str, outer_choice: str | None = None
    ) -> Conversion:
        """
        Args:
            modifier: The type's precision and the like, encoded; -1 for none.
            column: With table and schema.
            outer_choice: The choice for the domain or the array that contains the type.

        Raises:
            NoEqual: The type has no equal, and nothing was chosen for it.
        """
        try:
            return self._exactly(oid, modifier, column, outer_choice)
        except NoEqual:
            if self.chosen.get(ALL_OTHERS) != "text":
                raise
            return AS_TEXT

    def _exactly(
        self, oid: int, modifier: int, column: str, outer_choice: str | None
    ) -> Conversion:
        kind = self.types.get(oid)
        if kind is None:
            raise NoEqual("its type has been dropped since")
        choice = self.chosen.get(column) or self.chosen.get(kind.name) or outer_choice
        if choice == "text":
            return AS_TEXT
        if kind.base:
            outer = kind.base_modifier if modifier < 0 else modifier
            return self.of(kind.base, outer, column, choice)
        if kind.element:
            element = self.of(kind.element, modifier, column, choice)
            return Conversion(pa.list_(element.arrow), Arrays(element, kind.delimiter))
        if kind.name == "numeric":
            return _numeric(choice, modifier)
        if choice is not None:
            raise NoEqual(f"{kind.name} is chosen to be {choice}, which it is not")
        if kind.is_enum or kind.name in TEXTS:
            return AS_TEXT
        if kind.name not in PLAIN:
            raise NoEqual(f"a Delta table has no {kind.name}")
        return PLAIN[kind.name]


def _numeric(choice: str | None, modifier: int) -> Conversion:
    if choice is not None:
        found = CHOICE.fullmatch(choice)
        assert found is not None, "it was checked where it was chosen"
        precision, scale = int(found[1]), int(found[2])
    elif modifier < 0:
        raise NoEqual("a numeric without precision has any number of digits")
    else:
        # 16 bits each, the scale in the lowest 11, signed since 15.
        packed = modifier - 4
        precision, scale = packed >> 16 & 0xFFFF, packed & 0x7FF
        scale -= 0x800 if scale & 0x400 else 0
    # Values of numeric(3, 5) are below 0.01, and those of numeric(3, -2) end in two zeros.
    precision = max(precision, scale) - min(scale, 0)
    if precision > DIGITS:
        raise NoEqual(f"it has {precision} digits, and a decimal of Delta has up to {DIGITS}")
    return Conversion(pa.decimal128(precision, max(scale, 0)))


def check_choices(choices: Mapping[str, str]) -> dict[str, str]:
    """Raise `InvalidDefinition` if a choice is neither text nor a numeric of Delta's size."""
    found = {}
    for key, choice in choices.items():
        plain = choice.lower().replace(" ", "")
        form = CHOICE.fullmatch(plain)
        digits = [int(each) for each in form.groups() if each] if form else []
        if form is None or (digits and not 0 <= digits[1] <= digits[0] <= DIGITS):
            raise InvalidDefinition(
                f'types["{key}"] is "{choice}"',
                why="a column can be replicated as text, or a numeric with other digits",
                fix='"text", or "numeric(38, 9)": up to 38 digits, of which 9 behind the point',
            )
        found[key] = plain
    return found


def resolve_type_names(
    connection: Connection, choices: Mapping[str, str], columns: frozenset[str]
) -> dict[str, str]:
    """The choices by the full names of types: ``timestamptz`` is short for another.

    Args:
        choices: By column or type.
        columns: All published columns, with table and schema.

    Raises:
        InvalidDefinition: There is no such column and no such type.
    """
    plain = {ALL_OTHERS, *columns}
    found = {key: choice for key, choice in choices.items() if key in plain}
    for key in choices.keys() - found.keys():
        found[_type_name(connection, key)] = choices[key]
    return found


def _type_name(connection: Connection, key: str) -> str:
    try:
        # The path is empty for all statements; a type of a user may be meant without its schema.
        row = connection.execute("SELECT format_type(to_regtype(%s), NULL)", [key]).fetchone()
    except psycopg.Error:
        row = None
    if row is None or row[0] is None:
        raise InvalidDefinition(
            f'types names "{key}", which is neither a published column nor a type',
            fix='name a column with its table and schema, "public.orders.total", or a type, with '
            "its schema if it is your own",
        )
    return row[0]
