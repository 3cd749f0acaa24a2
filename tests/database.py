"""DuckDB standing in for Spark and Delta, so that a rule can be tested in milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from decimal import Decimal

import duckdb
import sqlglot
from casefile import CASES

from dagster_streamtables.compiler import STORED, TOUCHED, Entry, Plan, Text
from dagster_streamtables.compiler.render import render

_SCHEMA = sqlglot.parse((CASES / "tables.sql").read_text(), dialect="spark")
TABLES: dict[str, dict[str, str]] = {
    create.this.this.name: {c.name: c.args["kind"].sql("spark") for c in create.this.expressions}
    for create in _SCHEMA
    if create is not None
}
"""Source → column → type in Spark's words, as `compile_query` takes them."""

Rows = Counter[tuple[str, ...]]
Weighted = tuple[tuple[str, ...], int]
"""A row of SQL literals, and its weight."""


class Database:
    """The source tables at two moments, under the names that plans read."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        for create in _SCHEMA:
            assert create is not None
            self.run(create.sql("duckdb"))

    def run(self, script: str) -> None:
        self.connection.execute(script)

    @contextmanager
    def fresh(self) -> Iterator[Database]:
        """Empty tables for a while."""
        self.run("BEGIN")
        try:
            yield self
        finally:
            self.run("ROLLBACK")

    def remember(self, tables: Iterable[str]) -> None:
        """Call the rows as they are now `before`, and `after` too until `compare` says other."""
        for table in tables:
            for moment in ("before", "after"):
                self._keep(table, moment)

    def compare(self, tables: Iterable[str], noise: dict[str, list[Weighted]]) -> None:
        """Call the rows as they are now `after`, and the difference `change`.

        Args:
            tables: The ones that may have moved.
            noise: Rows that came and went in between. Copies are counted, so that weights other
                than 1 occur; the change is left as a change feed leaves it, not netted.
        """
        for table in tables:
            self.run(f'CREATE OR REPLACE TABLE "{table}@before" AS FROM "{table}@after"')
            self._keep(table, "after")
            names = ", ".join(f'"{name}"' for name in TABLES[table])
            went, came = (
                f"SELECT {names}, {sign}COUNT(*) AS __weight "
                f'FROM "{table}@{moment}" GROUP BY {names}'
                for sign, moment in (("-", "before"), ("", "after"))
            )
            self.run(f'CREATE OR REPLACE TABLE "{table}@change" AS {went} UNION ALL {came}')
            passing = [(row, sign * w) for row, w in noise.get(table, []) for sign in (1, -1)]
            if passing:
                values = ", ".join(f"({', '.join(row)}, {weight})" for row, weight in passing)
                self.run(f'INSERT INTO "{table}@change" VALUES {values}')

    def _keep(self, table: str, moment: str) -> None:
        self.run(f'CREATE OR REPLACE TABLE "{table}@{moment}" AS FROM {table}')

    def moved(self, tables: Iterable[str]) -> set[str]:
        """The sources whose rows are others than before."""
        both = {t: [self.rows(f'FROM "{t}@{m}"') for m in ("before", "after")] for t in tables}
        return {table for table, (before, after) in both.items() if before != after}

    def rows(self, sql: str) -> Rows:
        return Counter(tuple(map(_shown, row)) for row in self.connection.execute(sql).fetchall())

    def result(self, text: Text, moment: str) -> str:
        """The SQL of the user's own text over the sources at a moment: the independent oracle."""
        spark = text.over(lambda table: f"`{table}@{moment}`")
        return sqlglot.transpile(spark, read="spark", write="duckdb")[0]

    def columns(self, table: str) -> dict[str, str]:
        described = self.connection.execute(f'DESCRIBE "{table}"').fetchall()
        return {name: _in_spark(type_) for name, type_, *_ in described}


class Stored:
    """What the runtime would hold for a plan, refreshed as the runtime would refresh it."""

    TABLE = f"{STORED}@before"

    def __init__(self, database: Database, plan: Plan) -> None:
        self.database, self.plan = database, plan
        create = f"CREATE OR REPLACE TABLE \"{self.TABLE}\" AS "
        database.run(create + database.result(plan.full_text, "before"))
        # DuckDB gives a column the source's letter case, Spark the query's.
        found = database.columns(self.TABLE)
        assert [name.lower() for name in found] == [name.lower() for name in plan.stored_columns]
        self.types = dict(zip(plan.stored_columns, found.values(), strict=True))
        self.lost = 0

    def rows(self) -> Rows:
        return self.database.rows(f'FROM "{self.TABLE}"')

    def visible(self) -> Rows:
        names = ", ".join(f'"{name}"' for name in self.plan.schema)
        return self.database.rows(f'SELECT {names} FROM "{self.TABLE}"')

    def expected(self) -> Rows:
        """All columns, hidden ones too, as a full refresh would store them now."""
        return self.database.rows(self.database.result(self.plan.full_text, "after"))

    def expected_visible(self) -> Rows:
        """The result of the user's own words, without anything of ours in them."""
        return self.database.rows(self.database.result(self.plan.text, "after"))

    def refresh(self, *, unmoved: Set[str] = frozenset()) -> None:
        change = self.plan.change(stored=self.types, unmoved=unmoved)
        self.database.run(f"CREATE OR REPLACE TABLE step AS {render(change, dialect='duckdb')}")
        if self.plan.entry is Entry.BAG:
            self._add()
            return
        self._check_step()
        self._regroup_lost()
        self._replace()

    def _add(self) -> None:
        """Bag: weights are added; none is 0, no row is there twice."""
        names = ", ".join(f'"{name}"' for name in self.plan.schema)
        step = self.database.rows(f"SELECT {names} FROM step")
        assert max(step.values(), default=1) == 1, "a row is there twice"
        assert not self.database.rows("FROM step WHERE __weight = 0"), "a row that cancels is there"
        table = f'"{self.TABLE}"'
        self.database.run(
            f"CREATE OR REPLACE TABLE total AS SELECT {names}, SUM(__weight)::INT AS copies FROM "
            f"(SELECT {names}, 1 AS __weight FROM {table} UNION ALL "
            f"SELECT {names}, __weight FROM step) GROUP BY ALL"
        )
        assert not self.database.rows("FROM total WHERE copies < 0"), "a row went that was not there"
        self.database.run(
            f"CREATE OR REPLACE TABLE {table} AS SELECT * EXCLUDE (copies, i) FROM "
            "(SELECT *, UNNEST(range(copies)) AS i FROM total)"
        )

    def _check_step(self) -> None:
        assert not self.database.rows("FROM step WHERE __weight IS NULL"), "the state is corrupt"
        assert self.plan.key is not None
        keys = ", ".join(f'"{name}"' for name in self.plan.key) or "1"
        touched = self.database.rows(f"SELECT {keys} FROM step")
        assert max(touched.values(), default=1) == 1, "a key is there twice"

    def _regroup_lost(self) -> None:
        [(lost,)] = self.database.rows("SELECT COUNT(*) FROM step WHERE __weight = 0")
        if lost == "0":
            return
        self.lost += int(lost)
        keys = ", ".join(f'"{name}" AS "{key}"' for name, key in self.plan.root.key) or "1 AS one"
        touched = f"SELECT {keys} FROM step WHERE __weight = 0"
        self.database.run(f'CREATE OR REPLACE TABLE "{TOUCHED}@after" AS {touched}')
        again = render(self.plan.regroup(stored=self.types), dialect="duckdb")
        names = ", ".join(f'"{name}"' for name in (*self.types, "__weight"))
        self.database.run(
            f"CREATE OR REPLACE TABLE step AS SELECT {names} FROM step WHERE __weight <> 0 "
            f"UNION ALL SELECT {names} FROM ({again})"
        )
        self._check_step()

    def _replace(self) -> None:
        match = " AND ".join(f's."{k}" IS NOT DISTINCT FROM n."{k}"' for k in self.plan.key or ())
        names = ", ".join(f'"{name}"' for name in self.types)
        table = f'"{self.TABLE}"'
        self.database.run(f"DELETE FROM {table} AS s USING step AS n WHERE {match or 'true'}")
        self.database.run(f"INSERT INTO {table} SELECT {names} FROM step WHERE __weight = 1")


def _shown(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            # A sum of floats may differ by rounding; -0.0 and 0.0 are one value to SQL.
            return f"{value + 0.0:.10g}"
        case Decimal():
            return f"{value:f}"
    return str(value)


def _in_spark(type_: str) -> str:
    """The type that Spark would give the result: DuckDB's sums are wider than Spark's."""
    return {"HUGEINT": "BIGINT", "DECIMAL(38,2)": "DECIMAL(20,2)"}.get(type_, type_)
