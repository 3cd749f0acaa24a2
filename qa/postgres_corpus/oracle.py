"""PostgreSQL: the user's own text over the rows that the tables have, compared by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.abc import Buffer
from psycopg.types.numeric import FloatLoader

from dagster_streamtables.compiler import View
from named_rows import NamedRows, tuples
from postgres.compared import form
from qa.spark_corpus.oracle import Held, Line, Oracle, reordered
from qa.spark_corpus.relations import Base, NotLoaded

ORDERS = 5
"""In how many orders of its inputs a query is run that differs."""
_SCHEMA = "corpus"
_FLOATS = ("float4", "float8")
_TYPES = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "int": "integer",
    "bigint": "bigint", "float": "real", "double": "double precision", "string": "text",
    "binary": "bytea", "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
}  # fmt: skip


class Postgres(Oracle):
    name = "PostgreSQL"
    errors = (psycopg.Error,)

    def __init__(self, connection: psycopg.Connection[Any], seconds: float) -> None:
        """Over a server that has nothing else. The seconds are the limit of a query."""
        self.connection = connection
        self.bases: dict[str, tuple[Base, pa.Table]] = {}
        self.represented: set[str] = set()
        """Queries whose results are documented to look different."""
        self._execute(f"SET statement_timeout = {round(seconds * 1000)}")
        connection.adapters.register_loader("float4", _Real)
        self.forget()

    def give(self, tables: Sequence[tuple[Base, pa.Table]]) -> None:
        for base, rows in tables:
            if base.name not in self.bases:
                self._create(base)
            self.bases[base.name] = base, rows
            self._fill(base, rows)

    def _create(self, base: Base) -> None:
        columns = ", ".join(
            f'"{each.name}" {type_in_postgres(each.dataType.simpleString())}'
            for each in base.schema.fields
        )
        for schema in base.name.split(".")[:-1]:
            self._execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        self._execute(f"CREATE TABLE {_quoted(base.name)} ({columns})")

    def _fill(self, base: Base, rows: pa.Table) -> None:
        name = _quoted(base.name)
        self._execute(f"TRUNCATE {name}")
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy,
        ):
            for row in tuples(rows):
                copy.write_row(row)

    def _defined(self, view: View) -> bool:
        name = _quoted(view.name)
        columns = f" ({', '.join(map(_quoted, view.columns))})" if view.columns else ""
        try:
            self._execute(f"DROP VIEW IF EXISTS {name} CASCADE")
            self._execute(f"CREATE VIEW {name}{columns} AS {view.query}")
        except psycopg.Error:
            return False
        return True

    def _execute(self, text: str) -> psycopg.Cursor[Any]:
        return self.connection.execute(text.encode())

    def columns(self, text: str) -> list[str]:
        """The names of the columns of a query, which is planned and not run.

        Raises:
            psycopg.Error: PostgreSQL does not take the text.
        """
        raw = self.connection.pgconn
        for said in (raw.prepare(b"", text.encode()), raw.describe_prepared(b"")):
            if said.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise psycopg.errors.error_from_result(said)
        self._execute(f"EXPLAIN {text}")  # which computes constants
        return [(said.fname(place) or b"").decode() for place in range(said.nfields)]

    def fails(self, text: str) -> str:
        try:
            self._execute(text)
        except psycopg.Error as error:
            return str(error)
        return ""

    def differences(self, held: Sequence[Held]) -> dict[str, list[Line] | Exception]:
        return {each.name: self._differences(each) for each in held}

    def _differences(self, held: Held) -> list[Line] | Exception:
        try:
            expected = NamedRows.of_cursor(self._execute(held.text), form(False))
        except psycopg.Error as error:
            return error
        found = NamedRows.of_arrow(held.rows, form(False))
        if found.names != expected.names:
            return [Line(found.difference(expected), 1)]
        more, fewer = found.rows - expected.rows, expected.rows - found.rows
        return [
            *(Line(str(dict(zip(found.names, row, strict=True))), n) for row, n in more.items()),
            *(Line(str(dict(zip(found.names, row, strict=True))), -n) for row, n in fewer.items()),
        ]

    def is_rounding(self, held: Held) -> bool:
        """Whether the rows are equal but for the last digits of floats, or for what the product
        says of their representation."""
        cursor = self._execute(held.text)
        oids = {self.connection.adapters.types[each].oid for each in _FLOATS}
        floats = [each.name for each in cursor.description or () if each.type_code in oids]
        exact = [name for name in held.rows.column_names if name not in floats]
        if held.name in self.represented:
            exact = []
        rows = [dict(zip(held.rows.column_names, row, strict=True)) for row in tuples(held.rows)]
        names = [each.name for each in cursor.description or ()]
        theirs = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return _loosely(names, rows, exact) == _loosely(names, theirs, exact)

    def is_arbitrary(self, held: Held, views: Sequence[View]) -> bool:
        # Views read the tables, whichever order these have.
        first = self._answer(held)
        try:
            for number in range(ORDERS):
                self._reorder(Random(number), number)
                with self._joining(number):
                    if self._answer(held) != first:
                        return True
        finally:
            self.give(list(self.bases.values()))
        return False

    @contextmanager
    def _joining(self, number: int) -> Iterator[None]:
        """Other plans, in which rows arrive in another order, too."""
        off = ("enable_hashjoin", "enable_mergejoin", "enable_hashagg", "enable_nestloop")
        choice = off[number % len(off)]
        self._execute(f"SET {choice} = off")
        try:
            yield
        finally:
            self._execute(f"RESET {choice}")

    def _answer(self, held: Held) -> NamedRows:
        return NamedRows.of_cursor(self._execute(held.text), form(True))

    def _reorder(self, random: Random, number: int) -> None:
        for base, rows in self.bases.values():
            self._fill(base, reordered(rows, random, backward=number == 0))

    def forget(self) -> None:
        schemas = [name.split(".")[0] for name in self.bases if "." in name]
        for schema in (_SCHEMA, *schemas):
            self._execute(f"DROP SCHEMA IF EXISTS {_quoted(schema)} CASCADE")
        self._execute(f"CREATE SCHEMA {_SCHEMA}; SET search_path = {_SCHEMA}")
        self.bases.clear()
        self.represented.clear()


class _Real(FloatLoader):
    """A value of 32 bits as that of 64 bits, as Arrow gives it."""

    def load(self, data: Buffer) -> float:
        return pa.scalar(super().load(data), pa.float32()).as_py()


def type_in_postgres(kind: str) -> str:
    """The type of a column, from its name in Spark.

    >>> type_in_postgres("decimal(10,2)"), type_in_postgres("array<int>")
    ('numeric(10,2)', 'integer[]')

    Raises:
        NotLoaded: There is none.
    """
    if kind.startswith("decimal"):
        return kind.replace("decimal", "numeric")
    if kind.startswith("array<"):
        return f"{type_in_postgres(kind[6:-1])}[]"
    if kind not in _TYPES:
        raise NotLoaded(f"a table with the type {kind.partition('<')[0]}")
    return _TYPES[kind]


def _quoted(name: str) -> str:
    return ".".join(f'"{each}"' for each in name.lower().split("."))


def _loosely(names: Sequence[str], rows: Sequence[dict[str, Any]], exact: Sequence[str]) -> Any:
    made = [[form(name not in exact)(row.get(name)) for name in names] for row in rows]
    return NamedRows.of(names, made)
