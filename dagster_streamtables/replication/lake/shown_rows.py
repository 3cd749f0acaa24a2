"""What a rule shows, as a relation that `changes` reads: at a version, or between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.declare import declared
from dagster_streamtables.changes.relation.reading import Times
from dagster_streamtables.changes.relation.relation import Relation, relation_of
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lake.shown_table import ShownTable
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    import pyarrow as pa

_ANY = "1970-01-01T00:00:00+00:00"
"""The current time, which no filter uses."""
_NEVER = Times(_ANY, _ANY)


@dataclass(frozen=True)
class ShownRows:
    """The rows of one table. Without filters they are read without Spark, if they are few or only
    were added; a filter is Spark's to decide."""

    access: Access
    shown: ShownTable
    log: TableLog
    """At the version whose columns are read."""

    def change(self, before: TableLog) -> Iterator[pa.Table]:
        """What changed since an earlier version: columns as `flagged`, and the weight."""
        name = self.shown.rule.table
        yield from self._flagged.change({name: before}, {name: self.log}, _NEVER)

    def snapshot(self) -> Iterator[pa.Table]:
        """All rows that are copied, as `copied`, and the number of their copies as weight."""
        yield from self._copied.snapshot({self.shown.rule.table: self.log}, _ANY)

    def require_readable(self) -> None:
        """
        Raises:
            PublisherProblem: A column is of a type whose values cannot be compared.
        """
        self._relation(list(map(spark_name, self.shown.read)))

    @cached_property
    def flags(self) -> dict[str, str]:
        """Filter → the column that says whether it chooses the row."""
        return {where: f"__published_{i}" for i, where in enumerate(self.shown.rule.all_filters)}

    @cached_property
    def _flagged(self) -> Relation:
        # A filter that is NULL does not choose the row.
        flags = [f"COALESCE((\n{where}\n), FALSE) AS {flag}" for where, flag in self.flags.items()]
        return self._relation([*map(spark_name, self.shown.read), *flags])

    @cached_property
    def _copied(self) -> Relation:
        return self._relation(list(map(spark_name, self.shown.columns)), self.shown.rule.copy)

    def _relation(self, selected: Sequence[str], where: str = "") -> Relation:
        """
        Raises:
            PublisherProblem: A column is of a type whose values cannot be compared.
        """
        name = self.shown.rule.table
        source = ".".join(map(spark_name, name.split(".")))
        chosen = f"\nWHERE (\n{where}\n)" if where else ""
        query = f"SELECT {', '.join(selected)}\nFROM {source}{chosen}"
        try:
            declaration = declared(query, dialect="spark", views=(), recompute=False)
            relation = relation_of(self.access, declaration, name, {name: self.log})
            relation.schema  # noqa: B018, its types are looked at
        except InvalidDefinition as error:
            raise PublisherProblem(
                f'the table "{name}" cannot be published: {error.what}',
                where=self.log.location,
                why=error.why,
                fix="publish some of its columns only, without that one",
            ) from error
        return relation
