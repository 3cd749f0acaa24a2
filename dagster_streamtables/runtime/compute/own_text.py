"""The user's own text, run by plain Spark over versions of the tables that it names."""

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
    """The rows of a text.

    Args:
        text: The query.
        tables: The versions of the tables that it names.
        now: The time that it is told.
        relations: Makes views.
        limit: Of rows that may come to this process.
        recursion: How far a recursion may go.

    Raises:
        InvalidDefinition: Spark reads another table than those.
    """
    sql = runnable(relations.over(text, tables, now), relations, limit=limit, recursion=recursion)
    # Where a query must be, Spark takes no command. The line breaks end comments of the text.
    sql = f"SELECT * FROM (\n{sql}\n)"
    if not text.confirmed:
        _require_known(sql, text, relations)
    return relations.sql(sql)


def _require_known(sql: str, text: Text, relations: Relations) -> None:
    """That Spark's parser finds the same tables in a text that only its tokens tell of.

    A table that was overlooked could be one that Spark knows by itself: its rows would be read, and
    never followed.
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
            fix="write FROM and the name of the table in simpler words",
        )
