"""One query of some dialect → the text and its syntax tree."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from dagster_streamtables.compiler.text import Text, _broken, _cut_short
from dagster_streamtables.errors import InvalidDefinition, underline


def read_in(sql: str, dialect: str) -> Text:
    """Parse one query of a dialect.

    Raises:
        InvalidDefinition: The text is not one query of the dialect.
    """
    sql = sql.strip().rstrip(";").rstrip()
    try:
        statements = [each for each in sqlglot.parse(sql, dialect=dialect) if each is not None]
    except ParseError as error:
        raise _broken(sql, error) from None
    except TokenError as error:
        raise _cut_short(sql, error) from None
    except Exception as error:
        raise InvalidDefinition(
            "the query is not valid SQL",
            where=underline(sql, 0, len(sql)),
            why=f"it cannot be parsed as {dialect}: {error}",
            fix="look for a function with too few arguments",
        ) from error
    if len(statements) == 1 and isinstance(statements[0], exp.Query):
        return Text(sql, statements[0])
    raise InvalidDefinition(
        "the text is not one query",
        where=underline(sql, 0, len(sql.split()[0]) - 1 if sql else 0),
        why="a stream table holds the result of one query",
        fix="write exactly one SELECT",
    )
