"""DuckDB standing in for Spark and Delta, so that a rule can be tested in milliseconds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from decimal import Decimal
from functools import cache, cached_property, lru_cache

import duckdb
import sqlglot
from sqlglot import exp

from compiler.casefile import CASES
from dagster_streamtables.compiler import (
    STORED,
    TOUCHED,
    WEIGHT,
    BagMaintenance,
    Bounds,
    Plan,
    QueryPlan,
    RecursionLimits,
    Statement,
    Statistics,
    Text,
    compile_query,
    maintenance_of,
)
from dagster_streamtables.compiler.analyze.bind import bind
from dagster_streamtables.compiler.operators.algebra import Step
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.rewrite.fixpoint import has_recursions
from dagster_streamtables.compiler.text.current_time import NOW
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

_SCHEMA = sqlglot.parse((CASES / "tables.sql").read_text(), dialect="spark")
TABLES: dict[str, dict[str, str]] = {
    create.this.this.name: {c.name: c.args["kind"].sql("spark") for c in create.this.expressions}
    for create in _SCHEMA
    if create is not None
}
"""Source → column → type in Spark's words, as `compile_query` takes them."""

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`")

Literals = tuple[str, ...]
"""A row as SQL literals."""
Rows = Counter[tuple[str, ...]]
"""A bag of rows as text."""


class Database:
    """The source tables at two moments, under the names that plans read."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        # DuckDB 2.0 loses the rows of a LEFT JOIN on an empty table under a UNION ALL and a GROUP
        # BY when it optimizes (case "FULL JOIN pads both sides"); planned as written it does not.
        self.run("PRAGMA disable_optimizer; SET TimeZone = 'UTC'")
        self.run("CREATE MACRO timestamp_micros(micros) AS make_timestamptz(micros)")
        self.run("CREATE MACRO get(list, place) AS list[place + 1]")
        for create in _SCHEMA:
            assert create is not None
            self.run(create.sql("duckdb"))
        for table in TABLES:
            for moment in ("before", "after"):
                self.run(f'CREATE TABLE "{table}@{moment}" AS FROM {table}')
            self.run(
                f'CREATE TABLE "{table}@change" AS SELECT *, 1::BIGINT AS __weight FROM {table}'
            )

    def run(self, script: str) -> None:
        self.connection.execute(script)

    def set_time(self, before: str, after: str) -> None:
        """The times of the refresh before and of this one."""
        for moment, time in (("before", before), ("after", after)):
            self.run(f'SET VARIABLE "{NOW}@{moment}" = {time}')

    def stop_time(self) -> None:
        """Let the next refresh be at the time of this one."""
        self.run(f"SET VARIABLE \"{NOW}@before\" = getvariable('{NOW}@after')")

    def write(self, script: str) -> None:
        """Run DML in Spark's words."""
        self.run("; ".join(statements(script)))

    @contextmanager
    def fresh(self) -> Iterator[Database]:
        """Empty tables for a while, at noon, a day after the refresh before."""
        self.set_time(*(f"TIMESTAMPTZ '{day} 12:00:00+00'" for day in ("2013-01-31", "2013-02-01")))
        self.run("BEGIN")
        try:
            yield self
        finally:
            self.run("ROLLBACK")

    def hold(self, relation: str, rows: Iterable[Literals]) -> None:
        """Put the rows into a relation, in place of what it held."""
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        self.run(
            f'TRUNCATE "{relation}"'
            + (f'; INSERT INTO "{relation}" VALUES {values}' * bool(values))
        )

    def keep(self, relation: str, query: str) -> None:
        self.run(f'TRUNCATE "{relation}"; INSERT INTO "{relation}" {query}')

    def rows(self, sql: str) -> Rows:
        return Counter(tuple(map(_shown, row)) for row in self.connection.execute(sql).fetchall())

    def by_name(self, sql: str, names: Sequence[str]) -> str:
        """A query whose columns are chosen by name, in this order.

        Raises:
            AssertionError: It has other columns.
        """
        there = spark_names(self.outputs(sql), names)
        return f"SELECT {listed(names)} FROM ({sql}) AS t({listed(there)})"

    def outputs(self, sql: str) -> list[str]:
        return [name for name, *_ in self.connection.execute(f"DESCRIBE {sql}").fetchall()]

    def columns(self, table: str) -> dict[str, str]:
        described = self.connection.execute(f'DESCRIBE "{table}"').fetchall()
        return {name: _in_spark(type_) for name, type_, *_ in described}


def spark_names(there: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names in Spark of the outputs of a query, from those that DuckDB gives them.

    Letter case is that of the table in DuckDB, and that of the query in Spark. An output without a
    name is named by its expression, in other words than in Spark; such outputs have the remaining
    names, in their order. So only Spark can judge letter case and the names of expressions.

    >>> spark_names(["b", "count_star()", "Id"], ["id", "b", "count(1)"])
    ['b', 'count(1)', 'id']

    Args:
        there: The names in DuckDB.
        names: Those that the plan gives.

    Raises:
        AssertionError: The columns differ.
    """
    known = {name.lower(): name for name in names}
    found = [known.pop(name.lower(), None) for name in there]
    other = [name for name, own in zip(there, found, strict=True) if own is None]
    assert len(other) == len(known) and not any(map(str.isidentifier, other)), (there, names)
    left = iter(known.values())
    return [next(left) if name is None else name for name in found]


@cache
def statements(script: str, *, write: str = "duckdb") -> list[str]:
    """The statements of DML in Spark's words, each in those of a dialect."""
    return sqlglot.transpile(script, read="spark", write=write)


def change_of(went: Rows, came: Rows, passing: Mapping[Literals, int]) -> list[Literals]:
    """The rows of a change relation: copies counted, not netted.

    Args:
        passing: Rows that came and went in between, with the number of copies.
    """
    signed = [(-1, went), (1, came), (1, passing), (-1, passing)]
    return [(*row, str(sign * n)) for sign, rows in signed for row, n in rows.items()]


class Prepared:
    """A plan as the SQL that DuckDB runs, each statement written once.

    Staged, its stages run first, and what is paired with their rows is bounded by them.
    """

    def __init__(self, plan: Plan, *, staged: bool = False) -> None:
        self.plan = plan
        self.staged = staged
        # What a statement says depends on rows where parts of the plan run before it.
        self.is_fixed = not staged and not has_recursions(plan.view)
        self.full: dict[str, str] = {}
        self.text = ""
        if isinstance(plan, QueryPlan):
            self.write_full(plan)
        self._reads: dict[tuple[str, ...], bool] = {}
        self._written: dict[tuple[str, frozenset[str]], str] = {}
        self._by_name: dict[tuple[str, tuple[str, ...]], str] = {}

    def write_full(self, plan: QueryPlan) -> None:
        self.full = {moment: over(plan.full_text, moment) for moment in ("before", "after")}
        self.text = over(plan.text, "after")

    def written(self, what: str, unmoved: frozenset[str], ask: Callable[[], Statement]) -> str:
        if not self.is_fixed:
            return _sql(ask())
        if (what, unmoved) not in self._written:
            self._written[what, unmoved] = _sql(ask())
        return self._written[what, unmoved]

    def by_name(self, database: Database, sql: str, names: tuple[str, ...]) -> str:
        """See `Database.by_name`; analyzed once."""
        if (sql, names) not in self._by_name:
            self._by_name[sql, names] = database.by_name(sql, names)
        return self._by_name[sql, names]

    @cached_property
    def below(self) -> list[Prepared]:
        return [Prepared(plan, staged=self.staged) for plan in self.plan.intermediates]

    def reads(self, table: str, stored: dict[str, str]) -> bool:
        """Whether the change reads what is stored, asked of it when every source moved: one window
        may not need the rows that the next one needs."""
        types = tuple(stored.values())
        if types not in self._reads:
            every = self.plan.change(stored=stored)
            self._reads[types] = has_recursions(every) or table in render(every, pretty=False)
        return self._reads[types]


@cache
def plan_of(query: str) -> Plan:
    """The plan of a query over `TABLES`, made once: modules choose their cases by it when they are
    imported, and then test it."""
    return compile_query(query, TABLES)


def step_of_change(query: str, *changed: str) -> Step:
    """The change of a query when only these of its sources moved, or all if none is named."""
    plan = plan_of(query)
    stored = dict.fromkeys(plan.stored_columns, "bigint")
    return plan.change(stored=stored, unmoved=TABLES.keys() - (changed or TABLES))


@cache
def staged(query: str, *, over_intermediates: bool = False) -> Prepared:
    plan = plan_of(query)
    return Prepared(plan.with_intermediates if over_intermediates else plan, staged=True)


class DuckEngine:
    """Runs statements for the optimizer; staged, as cleverly as it can."""

    recursion = RecursionLimits()

    def __init__(self, database: Database, unmoved: frozenset[str], *, staged: bool) -> None:
        self.database, self.staged = database, staged
        few = 0 if staged else None
        self.statistics = Statistics(unmoved, 0, few, limit=1_000_000, stages=staged)

    def bounds(self, relation: str, column: str) -> Bounds | None:
        """As narrow as can be: each value is a range."""
        at_hand = relation.startswith((TOUCHED, "__st_round_")) or relation.endswith("@change")
        if not self.staged or not at_hand:
            return None
        asked = f'SELECT DISTINCT "{column}" FROM "{relation}" ORDER BY ALL'
        values = [value for (value,) in self.database.connection.execute(asked).fetchall()]
        some = [exp.convert(value) for value in values if value is not None]
        return Bounds(tuple((each, each) for each in some), None in values)

    def keep(self, relation: str, statement: Statement, most: int | None) -> int:
        del most
        self.database.run(f'CREATE OR REPLACE TABLE "{relation}" AS {_sql(statement)}')
        [(count,)] = self.database.rows(f'SELECT count(*) FROM "{relation}"')
        return int(count)

    def bring(self, relation: str, statement: Statement, most: int) -> int | None:
        return self.keep(relation, statement, most)


class Stored:
    """What the runtime would hold for a plan, refreshed as the runtime would refresh it."""

    TABLE = f"{STORED}@before"

    def __init__(self, database: Database, prepared: Prepared) -> None:
        self.database, self.prepared, self.plan = database, prepared, prepared.plan
        self._create(self._by_name(self._all("before")))
        self.types = database.columns(self.TABLE)
        self.rows = self._held()
        self._reads_itself = prepared.reads(self.TABLE, self.types)

    def _create(self, rows: str) -> None:
        self.database.run(f'CREATE OR REPLACE TABLE "{self.TABLE}" AS {rows}')

    def _held(self) -> Rows:
        """The rows of the stored table, with the columns in the order of the plan."""
        return self.database.rows(f'SELECT {listed(self.plan.stored_columns)} FROM "{self.TABLE}"')

    def _by_name(self, sql: str, *more: str) -> str:
        """A query whose columns are chosen by name, in the order of the plan."""
        names = (*self.plan.stored_columns, *more)
        return self.prepared.by_name(self.database, sql, names)

    @property
    def visible(self) -> Rows:
        """The columns of the user in the order of the query."""
        shown: Rows = Counter()
        for row, copies in self.rows.items():
            shown[row[: len(self.plan.schema)]] += copies
        return shown

    def _all(self, moment: str) -> str:
        """What a full refresh stores."""
        return self.prepared.full[moment]

    def check(self) -> None:
        """All columns are as a full refresh stores them; the user's, as the user's text says."""
        assert not (wrong := self.difference()), wrong
        if self.plan.internal_columns:
            visible = tuple(self.plan.schema)
            text = self.prepared.by_name(self.database, self.prepared.text, visible)
            assert self.visible == self.database.rows(text)

    def difference(self) -> str:
        """In what the stored rows are not those of a full refresh, in words; empty if they are."""
        expected = self.database.rows(self._by_name(self._all("after")))
        missing, unexpected = expected - self.rows, self.rows - expected
        if not missing and not unexpected:
            return ""
        names = ", ".join(self.plan.stored_columns)
        return f"({names}): missing {_few(missing)}, unexpected {_few(unexpected)}"

    def refresh(self, *, unmoved: Set[str] = frozenset()) -> None:
        engine = self._engine(unmoved)
        table = maintenance_of(self.plan, self.types)
        still = engine.statistics.unmoved
        change = self.prepared.written("change", still, lambda: table.change(engine))
        if isinstance(table, BagMaintenance):
            self._add(self.database.rows(self._by_name(change, WEIGHT)))
            if self._reads_itself:
                self._store(change)
            return
        lost = self._replace(change)
        if lost:
            keys = ", ".join(f'"{name}" AS "{key}"' for name, key in table.key)
            touched = f"SELECT {keys or '1 AS one'} FROM step WHERE __weight = 0"
            self.database.run(f'CREATE OR REPLACE TABLE "{TOUCHED}@after" AS {touched}')
            again = self.prepared.written("again", frozenset(), lambda: table.regroup(engine))
            assert not self._replace(again)
        self.rows = self._held()

    def _engine(self, unmoved: Set[str] = frozenset()) -> DuckEngine:
        return DuckEngine(self.database, frozenset(unmoved), staged=self.prepared.staged)

    def _add(self, step: Rows) -> None:
        """Bag: weights are added; none is 0, no row is there twice."""
        assert len({row[:-1] for row in step}) == step.total(), "a row is there twice"
        for *row, weight in step:
            assert weight != "0", "a row that cancels is there"
            self.rows[tuple(row)] += int(weight)
        assert min(self.rows.values(), default=0) >= 0, "a row went that was not there"
        self.rows = +self.rows

    def _store(self, step: str) -> None:
        """The same in the stored table, which the next change of the plan reads."""
        names = listed(self.types)
        copies = "FROM step, range(CAST(abs(__weight) AS BIGINT))"
        self.database.run(
            f"CREATE OR REPLACE TABLE step AS {step};"
            f'CREATE OR REPLACE TABLE "{self.TABLE}" AS '
            f'(FROM "{self.TABLE}" UNION ALL SELECT {names} {copies} WHERE __weight > 0) '
            f"EXCEPT ALL SELECT {names} {copies} WHERE __weight < 0"
        )

    def _replace(self, step: str) -> int:
        """Store and delete by key; the number of keys that are lost."""
        assert self.plan.key is not None
        self.database.run(f"CREATE OR REPLACE TABLE step AS {step}")
        keys = ", ".join(f'"{name}"' for name in (*self.plan.key, "__weight"))
        touched = self.database.rows(f"SELECT {keys} FROM step")
        assert len({row[:-1] for row in touched}) == touched.total(), "a key is there twice"
        actions = Counter(row[-1] for row in touched)
        assert not actions["NULL"], "the stored state is corrupt"
        match = " AND ".join(f's."{k}" IS NOT DISTINCT FROM n."{k}"' for k in self.plan.key)
        names = ", ".join(f'"{name}"' for name in self.types)
        self.database.run(
            f'DELETE FROM "{self.TABLE}" AS s USING step AS n '
            f"WHERE n.__weight <> 0 AND {match or 'true'};"
            f'INSERT INTO "{self.TABLE}" SELECT {names} FROM step WHERE __weight = 1'
        )
        return actions["0"]


def over(text: Text, moment: str) -> str:
    """The user's own text over the sources at a moment: the independent oracle.

    DuckDB has no pipes: it runs what the compiler takes them for. Spark runs them as written.
    """
    sql = text.over(lambda table: f"`{table}@{moment}`").sql
    if text.has_pipes:
        sql = _without_pipes(text, moment)
    sql = re.sub(r" MAX RECURSION LEVEL \d+", "", sql)  # Spark's only
    # Two quotes inside of a text are one, which sqlglot's Spark does not know.
    sql = _QUOTED.sub(lambda text: _with_single_quotes(text[0]), sql)
    return in_duckdb(sql.replace(f"{NOW}()", f"`{NOW}@{moment}`"))


def _without_pipes(text: Text, moment: str) -> str:
    tree, scans, _ = bind(text, TABLES)
    for table in tree.find_all(exp.Table):
        if table.name in scans:
            table.set("this", exp.to_identifier(f"{scans[table.name]}@{moment}", quoted=True))
    for group in tree.find_all(exp.Group):
        if not any(group.args.values()):  # GROUP BY ALL of aggregates alone
            group.pop()
    return tree.sql(DIALECT)


def _with_single_quotes(literal: str) -> str:
    mark, inside = literal[0], literal[1:-1]
    if mark != "`":
        inside = re.sub(r"\\.|''|\"\"", lambda text: _one_of_two(text[0], mark), inside)
    return f"{mark}{inside}{mark}"


def _one_of_two(text: str, mark: str) -> str:
    return f"\\{mark}" if text == mark * 2 else text


def _sql(statement: Statement) -> str:
    return in_duckdb(render(statement.rows, pretty=False))


@lru_cache(4096)
def in_duckdb(spark: str) -> str:
    [tree] = sqlglot.parse(spark, read="spark")
    assert tree is not None
    for node in list(tree.find_all(exp.TryCast, exp.CountIf)):
        if isinstance(node, exp.TryCast) and not node.args.get("safe"):
            # sqlglot takes Spark's CAST for one that gives NULL.
            node.replace(exp.Cast(this=node.this, to=node.to))
        elif isinstance(node, exp.CountIf) and not isinstance(node.this, exp.Distinct):
            # DuckDB's is NULL of no rows, Spark's is 0.
            node.replace(exp.Count(this=exp.Case().when(node.this, exp.Literal.number(1))))
    sql = tree.sql("duckdb", copy=False).replace("UTF8_LCASE", "NOCASE")
    return re.sub(f'"({NOW}@[a-z]+)"', r"getvariable('\1')", sql)


def listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _few(rows: Rows) -> str:
    return "{" + ", ".join(" | ".join(row) for row in list(rows.elements())[:4]) + "}"


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
    narrow = {"HUGEINT": "BIGINT", "DECIMAL(38,2)": "DECIMAL(20,2)"}.get(type_, type_)
    return exp.DataType.build(narrow, dialect="duckdb").sql("spark")
