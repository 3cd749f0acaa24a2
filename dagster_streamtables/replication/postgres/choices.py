"""What a user chooses for types that have no equal in a Delta table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.postgres.conversions import ALL_OTHERS

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

TARGETS = re.compile(r"text|numeric\((\d+),(\d+)\)")


def check_choices(choices: Mapping[str, str]) -> dict[str, str]:
    """
    Raises:
        InvalidDefinition: A choice is neither text nor a numeric of Delta's size.
    """
    found = {}
    for key, choice in choices.items():
        plain = choice.lower().replace(" ", "")
        form = TARGETS.fullmatch(plain)
        digits = [int(each) for each in form.groups() if each] if form else []
        if form is None or (digits and not 0 <= digits[1] <= digits[0] <= 38):
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
        connection: To the server.
        choices: By column or type.
        columns: All that are published, with table and schema.

    Raises:
        InvalidDefinition: There is no such column and no such type.
    """
    plain = {ALL_OTHERS, *columns}
    found = {key: choice for key, choice in choices.items() if key in plain}
    for key in choices.keys() - found.keys():
        found[_type_name(connection, key)] = choices[key]
    return found


def _type_name(connection: Connection, key: str) -> str:
    import psycopg

    try:
        # The path is empty for all statements; a type of a user may be meant without its schema.
        row = connection.execute("SELECT format_type(to_regtype(%s), NULL)", [key]).fetchone()
    except psycopg.Error:
        row = None
    if row is None or row[0] is None:
        raise InvalidDefinition(
            f'types names "{key}", which is no published column and no type',
            fix='name a column with its table and schema, "public.orders.total", or a type, with '
            "its schema if it is your own",
        )
    return row[0]
