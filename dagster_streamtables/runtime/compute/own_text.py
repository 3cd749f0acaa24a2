"""The user's own query, run by plain Spark over versions of its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import RecursionLimits, Text
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.compute.recursion_rounds import runnable
from dagster_streamtables.runtime.compute.relations import Relations
from dagster_streamtables.runtime.delta.delta_log import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RELATION = re.compile(r"^[\s:|+-]*'?UnresolvedRelation \[([^\]]*)\]", re.MULTILINE)


def rows_of(
    text: Text,
    tables: Mapping[str, Snapshot],
    now: str,
    relations: Relations,
    *,
    limit: int,
    recursion: RecursionLimits,
) -> DataFrame:
    """The rows of a query.

    Args:
        text: The query.
        tables: The versions of its tables.
        now: Its current time.
        relations: Creates views.
        limit: Number of rows that may come to this process.
        recursion: The limits of a recursion.

    Raises:
        InvalidDefinition: Spark reads a table that is not among `tables`.
    """
    relations.query = asked = relations.over(text, tables, now).as_subquery()
    sql = runnable(asked.sql, relations, limit=limit, recursion=recursion)
    if not text.confirmed:
        _require_known(sql, text, relations)
    return relations.sql(sql)


def _require_known(sql: str, text: Text, relations: Relations) -> None:
    """Check that Spark's parser finds the same tables, in a text of which only tokens are known.

    An overlooked table could be one of Spark's own: its rows would be read, but its changes never.
    """
    [[explained]] = relations.spark.sql(f"EXPLAIN EXTENDED {sql}").collect()
    parsed = str(explained).partition("== Analyzed Logical Plan ==")[0]
    found = {name.lower() for name in _RELATION.findall(parsed)}
    defined = {each.name.lower() for each in text.definitions}
    unknown = sorted(name for name in found if name not in defined | relations.views)
    if unknown:
        raise InvalidDefinition(
            f'Spark reads "{unknown[0].replace(", ", ".")}" and nothing follows it',
            why=f"the tables that were found in the query are: {', '.join(text.sources)}",
            fix="write FROM and the name of the table in a simpler form",
        )
