"""Row filters: which rows of a log the publications show.

The server decides, as it did when it was asked to publish: a row that is text becomes one with the
types of its columns, and the filter is a condition over that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.publisher import Operation
from dagster_streamtables.replication.postgres.catalog import CatalogColumn, CatalogTable
from dagster_streamtables.replication.postgres.triggers.shapes import TriggerShapes

if TYPE_CHECKING:
    from psycopg import sql

    from dagster_streamtables.replication.postgres.server import Connection

NAMES = """
    SELECT attnum, attname FROM pg_attribute
    WHERE attrelid = %s::oid AND attnum > 0 AND NOT attisdropped
"""
OPS = {"I": Operation.INSERT, "u": Operation.UPDATE, "U": Operation.UPDATE, "D": Operation.DELETE}


def filter_condition(connection: Connection, shapes: TriggerShapes) -> sql.Composable:
    """A condition over a log, called l. The connection has the types that it names."""
    from psycopg import sql

    cases = [
        sql.SQL("WHEN l.relation = {} AND l.shape = {} THEN {}").format(
            sql.Literal(relation),
            sql.Literal(shape),
            _row_condition(connection, kind, columns, table),
        )
        for kind, ((relation, shape), columns) in enumerate(
            _shapes_with_filters(connection, shapes)
        )
        for table in [shapes.tables[relation]]
    ]
    if not cases:
        return sql.SQL("true")
    return sql.SQL("CASE {} ELSE true END").format(sql.SQL(" ").join(cases))


def filter_of(table: CatalogTable, operation: Operation) -> str | None:
    """The condition of an operation; None if all rows are published."""
    filters = [each.filter for each in table.entries if operation in each.operations]
    if not all(filters):
        return None
    return " OR ".join(f"({each})" for each in dict.fromkeys(filters)) or None


def _shapes_with_filters(
    connection: Connection, shapes: TriggerShapes
) -> Iterator[tuple[tuple[int, int], list[CatalogColumn]]]:
    """The columns have the names that they have now, as filters do."""
    for (relation, shape), found in shapes.shapes.items():
        table = shapes.tables.get(relation)
        if table is not None and any(filter_of(table, op) for op in OPS.values()):
            names = dict(connection.execute(NAMES, [relation]).fetchall())
            yield (
                (relation, shape),
                [
                    replace(each, name=names.get(number, f"{each.name} {number}"))
                    for each, number in zip(found.columns, found.numbers, strict=True)
                ],
            )


def _row_condition(
    connection: Connection, kind: int, columns: list[CatalogColumn], table: CatalogTable
) -> sql.Composed:
    from psycopg import sql

    # A type that goes with the connection. Types that are dropped are of no filter.
    texts = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(each.name), _type(connection, each))
        for each in columns
    )
    name = sql.Identifier("pg_temp", f"shape_{kind}")
    connection.execute(sql.SQL("CREATE TYPE {} AS ({})").format(name, texts))
    cases = [
        sql.SQL("WHEN {} THEN (SELECT ({}) FROM (SELECT (l.changed::{}).*) AS r)").format(
            sql.Literal(op),
            sql.SQL(filter_of(table, operation) or "true"),  # type: ignore[arg-type]
            name,
        )
        for op, operation in OPS.items()
    ]
    return sql.SQL("coalesce(CASE l.op {} ELSE true END, false)").format(sql.SQL(" ").join(cases))


def _type(connection: Connection, column: CatalogColumn) -> sql.SQL:
    from psycopg import sql

    row = connection.execute(
        "SELECT format_type(oid, %s) FROM pg_type WHERE oid = %s::oid",
        [column.modifier, column.type],
    ).fetchone()
    return sql.SQL(row[0] if row else "text")
