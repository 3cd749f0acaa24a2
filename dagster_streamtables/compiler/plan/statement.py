"""`Statement`: SQL for Spark, in which relations are replaced by views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dagster_streamtables.compiler.operators import Moment, Step, relation
from dagster_streamtables.compiler.operators.render import statement_of
from dagster_streamtables.compiler.operators.scan import scans_of
from dagster_streamtables.compiler.operators.timed import set_time
from dagster_streamtables.compiler.text.current_time import literal
from dagster_streamtables.compiler.text.spark import DIALECT


@dataclass(frozen=True)
class Statement:
    """A query over relations, ready to run."""

    rows: Step
    """The rows that it computes."""

    @cached_property
    def reads(self) -> frozenset[str]:
        """The relations that it reads, by their names from `relation`."""
        return frozenset(relation(scan.table, scan.moment) for scan in scans_of(self.rows))

    def sql(self, views: Mapping[str, str], *, then: str, now: str) -> str:
        """The text that Spark runs.

        Args:
            views: Relation → its view, in backticks.
            then: The time of the previous refresh, in ISO 8601.
            now: The time of this refresh.
        """
        query = statement_of(self.rows)
        set_time(query, {Moment.BEFORE: literal(then), Moment.AFTER: literal(now)})
        _bind(query, views)
        return query.sql(DIALECT, copy=False)


def _bind(query: exp.Query, views: Mapping[str, str]) -> None:
    """Replace relations by views.

    In the tree, because in the text a literal or a column may look the same.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT '`o@after`' AS `o@after` FROM `o@after`", "spark")
    >>> _bind(query, {"o@after": "`v7`"})
    >>> query.sql("spark")
    "SELECT '`o@after`' AS `o@after` FROM `v7`"
    """
    for table in query.find_all(exp.Table):
        view = views.get(table.name)
        if view is not None:
            table.set("this", exp.to_identifier(view.strip("`"), quoted=True))
