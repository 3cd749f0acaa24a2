"""The types of a server, as its catalog describes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

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
    """Of a domain: the type that it restricts."""
    base_modifier: int = -1
    element: int = 0
    """Of an array: the type of its elements."""
    delimiter: str = ","


def types_of(connection: Connection, oids: Collection[int]) -> Mapping[int, ServerType]:
    """The types, and those that they are made of. One that was dropped is missing."""
    rows = connection.execute(QUERY, [list(oids)]).fetchall()
    return {oid: ServerType(*rest) for oid, *rest in rows}
