"""Plans over intermediate tables on DuckDB: each is refreshed first, and then a source."""

from __future__ import annotations

from collections.abc import Set

from compiler.database import Database, Prepared, Stored
from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.plan.optimizer import optimize


def stored_in(database: Database, prepared: Prepared) -> Stored:
    """What the runtime would hold for a plan, intermediate tables and all."""
    return (Over if prepared.plan.intermediates else Stored)(database, prepared)


class _Aside(Stored):
    """A stored table among several, of which one at a time is where plans read theirs."""

    def __init__(self, database: Database, prepared: Prepared) -> None:
        self.aside = prepared.plan.name or "stream table"
        super().__init__(database, prepared)
        self._copy(self.TABLE, self.aside)

    def refresh(self, *, unmoved: Set[str] = frozenset()) -> None:
        self._copy(self.aside, self.TABLE)
        super().refresh(unmoved=unmoved)
        self._copy(self.TABLE, self.aside)

    def _copy(self, one: str, other: str) -> None:
        self.database.run(f'CREATE OR REPLACE TABLE "{other}" AS FROM "{one}"')


class Intermediate(_Aside):
    def __init__(self, database: Database, prepared: Prepared) -> None:
        super().__init__(database, prepared)
        self._copy(self.aside, f"{self.aside}@before")

    def refresh(self, *, unmoved: Set[str] = frozenset()) -> None:
        self._copy(self.aside, f"{self.aside}@before")
        super().refresh(unmoved=unmoved)
        self._copy(self.aside, f"{self.aside}@after")
        names = ", ".join(f'"{name}"' for name in self.types)
        sides = (
            f'SELECT {names}, {w} AS w FROM "{self.aside}@{side}"'
            for side, w in (("before", -1), ("after", 1))
        )
        self.database.run(
            f'CREATE OR REPLACE TABLE "{self.aside}@change" AS '
            f"SELECT {names}, CAST(SUM(w) AS BIGINT) AS __weight "
            f"FROM ({' UNION ALL '.join(sides)}) GROUP BY {names} HAVING SUM(w) <> 0"
        )

    @property
    def moved(self) -> bool:
        return bool(self.database.rows(f'FROM "{self.aside}@change"'))

    def _all(self, moment: str) -> str:
        rows: Operator = getattr(self.plan.view, moment)
        return self.prepared.written(moment, frozenset(), lambda: optimize(rows, self._engine()))


class Over(_Aside):
    """A stream table over intermediate ones."""

    def __init__(self, database: Database, prepared: Prepared) -> None:
        self.below = [Intermediate(database, each) for each in prepared.below]
        super().__init__(database, prepared)

    def refresh(self, *, unmoved: Set[str] = frozenset()) -> None:
        still = set(unmoved)
        for table in self.below:
            table.refresh(unmoved=still)
            # What plans are told of sources that stand still, they are told of these.
            if unmoved and not table.moved:
                still.add(table.aside)
        super().refresh(unmoved=still)

    def check(self) -> None:
        for table in self.below:
            table.check()
        super().check()
