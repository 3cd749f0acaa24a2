"""A publisher to write to: a lake or a PostgreSQL server, by the same words; and a subscriber."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
from deltalake import DeltaTable

from changes.table import FEED, Table
from dagster_streamtables import (
    FromLake,
    FromPostgres,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replications,
)
from dagster_streamtables.replication.model.replication_model import Operation
from named_rows import tuples
from replication.postgres.database import Database

Row = tuple[Any, ...]
ALL = tuple(Operation)
KV = {"k": "int", "v": "text"}
TYPES = {"int": pa.int64(), "text": pa.string()}


@dataclass
class LakeOrigin:
    root: Path
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    schemas: dict[str, pa.Schema] = field(default_factory=dict[str, pa.Schema])

    @property
    def lake(self) -> Lake:
        return Lake(self.root)

    def table(self, name: str) -> Table:
        return Table(self.lake.location(name), self.schemas[name])

    def create(
        self, table: str, columns: Mapping[str, str] = KV, key: Collection[str] = ("k",)
    ) -> None:
        self.keys[table] = tuple(key)
        self.schemas[table] = pa.schema([(name, TYPES[kind]) for name, kind in columns.items()])
        Table.new(self.lake.location(table), self.schemas[table], FEED)

    def insert(self, table: str, *rows: Row) -> None:
        self.table(table).insert(*rows)

    def update(self, table: str, where: str, **values: str) -> None:
        self.table(table).update(where, **values)

    def delete(self, table: str, where: str) -> None:
        self.table(table).delete(where)

    def truncate(self, *tables: str) -> None:
        for each in tables:
            self.table(each).delete()

    def publish(
        self, name: str, *tables: str, where: str = "", operations: Collection[str] = ALL
    ) -> None:
        entries = tuple(self._entry(each, where) for each in tables)
        publication = Publication(name, entries, operations=frozenset(map(Operation, operations)))
        Publications(self.lake.root).create(publication)

    def add(self, publication: str, table: str) -> None:
        Publications(self.lake.root).add(publication, self._entry(table, ""))

    def remove(self, publication: str, table: str) -> None:
        Publications(self.lake.root).remove(publication, table)

    def declared(self, *publications: str) -> FromLake:
        return FromLake(self.lake.root, publications)

    def slots(self) -> list[str]:
        return self.lake.slots.names()

    def _entry(self, table: str, where: str) -> PublicationEntry:
        return PublicationEntry(table, where=where, key=self.keys[table] or None)


@dataclass
class PostgresOrigin:
    database: Database
    capture: Literal["auto", "wal", "trigger"] = "auto"

    def create(
        self, table: str, columns: Mapping[str, str] = KV, key: Collection[str] = ("k",)
    ) -> None:
        parts = [f"{name} {kind}" for name, kind in columns.items()]
        parts += [f"PRIMARY KEY ({', '.join(key)})"] if key else []
        self.database.run(f"CREATE TABLE {table} ({', '.join(parts)})")

    def insert(self, table: str, *rows: Row) -> None:
        values = ", ".join(f"({', '.join(map(repr, row))})" for row in rows)
        self.database.run(f"INSERT INTO {table} VALUES {values}")

    def update(self, table: str, where: str, **values: str) -> None:
        set_ = ", ".join(f"{name} = {value}" for name, value in values.items())
        self.database.run(f"UPDATE {table} SET {set_} WHERE {where}")

    def delete(self, table: str, where: str) -> None:
        self.database.run(f"DELETE FROM {table} WHERE {where}")

    def truncate(self, *tables: str) -> None:
        self.database.run(f"TRUNCATE {', '.join(tables)}")

    def publish(
        self, name: str, *tables: str, where: str = "", operations: Collection[str] = ALL
    ) -> None:
        only = f" WHERE ({where})" if where else ""
        named = ", ".join(f"{table}{only}" for table in tables)
        kinds = ", ".join(operations)
        self.database.run(f"CREATE PUBLICATION {name} FOR TABLE {named} WITH (publish = '{kinds}')")

    def add(self, publication: str, table: str) -> None:
        self.database.run(f"ALTER PUBLICATION {publication} ADD TABLE {table}")

    def remove(self, publication: str, table: str) -> None:
        self.database.run(f"ALTER PUBLICATION {publication} DROP TABLE {table}")

    def declared(self, *publications: str) -> FromPostgres:
        return FromPostgres(self.database.address, publications, capture=self.capture)

    def slots(self) -> list[str]:
        return self.database.slots()


Origin = LakeOrigin | PostgresOrigin
AnyOrigin = TypeVar("AnyOrigin", LakeOrigin, PostgresOrigin)


def published(origin: AnyOrigin, *tables: str) -> AnyOrigin:
    """With tables of two rows, which are published as `p`."""
    tables = tables or ("t",)
    for table in tables:
        origin.create(table)
        origin.insert(table, (1, "a"), (2, "b"))
    origin.publish("p", *tables)
    return origin


class Subscriber(Replications):
    """The replications of a lake, and the rows of their targets."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self.lake = lake

    def again(self) -> Subscriber:
        """As another process has it."""
        return Subscriber(Lake(self.lake.root))

    def target(self, table: str) -> DeltaTable:
        return DeltaTable(self.lake.location(table))

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Counter[Row]:
        return rows(self.lake, table, columns)


def rows(lake: Lake, table: str, columns: Sequence[str] | None = None) -> Counter[Row]:
    """The rows of a target, with some columns in this order, or with all of them by name."""
    found = DeltaTable(lake.location(table)).to_pyarrow_table()
    return Counter(tuples(found.select(list(columns or sorted(found.column_names)))))
