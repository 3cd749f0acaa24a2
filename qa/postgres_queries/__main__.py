"""`python -m qa.postgres_queries`: random queries over random changes, on PostgreSQL 18 and here.

    python -m qa.postgres_queries --queries 1000 --seed 7
    python -m qa.postgres_queries --queries 50 --static
    python -m qa.postgres_queries --replay 7:123

Each query is a stream table that follows three windows of changes; after each, its rows are those
of PostgreSQL, or both fail. `--static` compares the translation alone, on the rows that are there
after the last window. Ends with 1 if anything differed, and prints which outputs differ alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.compiler.dialect.query_translation import translation
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from postgres.compared import of_spark, ours, theirs
from postgres.server import connected
from postgres.tables import COLUMNS, ROWS, TYPES, Row, change, create, insert
from qa.postgres_queries.random_expressions import KINDS, expression

_AGGREGATES = [
    "count(*)", "count({i})", "sum({i})", "avg({i})", "sum({n})", "avg({n})", "min({t})",
    "max({d})",
    "sum({n}) / count(*)", "100.0 * count({i}) / count(*)", "bool_and({b})", "every({b})",
    "array_agg({i} ORDER BY id)", "array_agg(DISTINCT {i})", "string_agg({t}, ',' ORDER BY id)",
    "round(avg({n}), 2)", "count(DISTINCT {t})", "sum({i}) FILTER (WHERE {b})", "max({s})",
    "avg({n}) FILTER (WHERE {b})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {n})",
    "bit_or({i})", "min({n}) / nullif(max({i}), 0)",
]  # fmt: skip
_LETTERS = {"i": "int", "n": "num", "t": "text", "b": "bool", "s": "ts", "d": "date"}


def random_query(random: Random) -> tuple[str, list[str], str]:
    """The head, the outputs and the tail of a query, so that an output can be tried alone."""
    shape = random.choice(
        ("rows", "rows", "filtered", "groups", "groups", "windows", "first", "limited", "ties")
    )
    count = random.randint(2, 4)
    if shape == "groups":
        column = random.choice(("x", "y", "f", "u", "s", "dt", "x % 2", "left(s, 1)", "n > 1"))
        key = random.choice((column, f"coalesce({column}, NULL)"))
        outputs = [_aggregate(random) for _ in range(count)]
        by = random.choice((f"({key})", f"({key})", "1", "k"))
        having = " HAVING count(*) > 1" if random.random() < 0.2 else ""
        first = random.choice(("", "", f" ORDER BY {_order(random, of_groups=True)}, 1 LIMIT 2"))
        return f"SELECT ({key}) AS k", outputs, f"FROM t GROUP BY {by}{having}{first}"
    outputs = [expression(random, random.choice(KINDS), random.randint(1, 3)) for _ in range(count)]
    where = f" WHERE {expression(random, 'bool', 2)}" if shape == "filtered" else ""
    if shape == "windows":
        by = random.choice(("f", "y", "x % 2"))
        outputs[0] = f"{_aggregate(random, windowed=True)} OVER (PARTITION BY {by})"
    if shape == "first":
        by = random.choice(("f", "y"))
        last = random.choice(("id DESC", "1 DESC", f"{_order(random)}, 1"))
        return f"SELECT DISTINCT ON ({by}) id", outputs, f"FROM t{where} ORDER BY {by}, {last}"
    if shape == "limited":
        end = f"LIMIT {random.randint(1, 4)} OFFSET {random.randint(0, 2)}"
        return "SELECT -id AS id", outputs, f"FROM t{where} ORDER BY {_order(random)}, id {end}"
    if shape == "ties":
        end = f"FETCH FIRST {random.randint(1, 3)} ROWS WITH TIES"
        return "SELECT id, -x AS x", outputs, f"FROM t{where} ORDER BY {_order(random)} {end}"
    return "SELECT id", outputs, f"FROM t{where}"


def _order(random: Random, *, of_groups: bool = False) -> str:
    """By an output, as its number or name, or by an expression of what is below it."""
    below = ("count(*)", "-max(x)") if of_groups else ("x", "f", "-id", "abs(x)", "coalesce(y, x)")
    by = random.choice(("2", "(2)", "c0", "c1", *below))
    return by + random.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))


def _aggregate(random: Random, *, windowed: bool = False) -> str:
    plain = [each for each in _AGGREGATES if "(" in each and each.count("(") == 1]
    form = random.choice([e for e in plain if "DISTINCT" not in e and "ORDER" not in e]
                         if windowed else _AGGREGATES)  # fmt: skip
    for letter, kind in _LETTERS.items():
        form = form.replace(f"{{{letter}}}", expression(random, kind, random.randint(0, 2)))
    return form


def written(head: str, outputs: list[str], tail: str) -> str:
    columns = "".join(f", {sql} AS c{place}" for place, sql in enumerate(outputs))
    return f"{head}{columns} {tail}"


def random_steps(random: Random) -> list[tuple[list[int], list[Row]]]:
    """Three windows of changes of rows whose ids are unique, so that `ORDER BY id` has no ties."""
    alive: list[int] = []
    steps: list[tuple[list[int], list[Row]]] = []
    next_id = 1
    for _ in range(3):
        deleted = random.sample(alive, len(alive) // 3)
        rows: list[Row] = []
        for _ in range(random.randint(3, 6)):
            rows.append((next_id, *_mixed(random)))
            next_id += 1
        alive = [each for each in alive if each not in deleted] + [row[0] for row in rows]
        steps.append((deleted, rows))
    return steps


def _mixed(random: Random) -> list[Any]:
    """Values of several rows of the cases, column by column."""
    found = [random.choice(ROWS)[place] for place in range(1, len(TYPES))]
    return [None if random.random() < 0.05 else each for each in found]


class Trials:
    def __init__(self, connection: Any, spark: Any, *, static: bool) -> None:
        self.connection = connection
        self.spark = spark
        self.static = static
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def run(self, seed: int, number: int) -> bool:
        """Whether a query is as it should be."""
        random = Random(f"{seed}:{number}")
        head, outputs, tail = random_query(random)
        steps = random_steps(random)
        query = written(head, outputs, tail)
        try:
            _, notes = translation(query, "postgres", COLUMNS)
        except InvalidDefinition as error:
            self.counts["refused"] += 1
            self.reasons[error.why] += 1
            return True
        found = self._differs(query, steps, loosely=bool(notes))
        if found:
            alone = [o for o in outputs if self._is_at_fault(written(head, [o], tail), steps)]
            print(
                f"--replay {seed}:{number}\n  {query}\n  {found}\n  at fault: {alone}", flush=True
            )
            self.counts["different"] += 1
        return not found

    def _is_at_fault(self, query: str, steps: list[Any]) -> bool:
        notes = translation(query, "postgres", COLUMNS)[1]
        return bool(self._differs(query, steps, loosely=bool(notes), counted=False))

    def _differs(self, query: str, steps: list[Any], *, loosely: bool, counted: bool = True) -> str:
        create(self.connection)
        if self.static:
            return self._translation_differs(query, steps, loosely=loosely, counted=counted)
        with tempfile.TemporaryDirectory() as folder:
            lake = Lake(folder, spark=self.spark)
            table = StreamTable("q", query, dialect="postgres", differential_max_change_ratio=0)
            for place, (deleted, inserted) in enumerate(steps):
                change(self.connection, lake, deleted, inserted)
                expected = self._theirs(query, loosely=loosely)
                found = self._ours(lake, table, loosely=loosely)
                if isinstance(found, str) and isinstance(expected, str):
                    self.counts["both fail"] += counted
                    return ""
                if found != expected:
                    return f"window {place}: {_said(expected, found)}"
        self.counts["equal loosely" if loosely else "equal"] += counted
        return ""

    def _translation_differs(
        self, query: str, steps: list[Any], *, loosely: bool, counted: bool
    ) -> str:
        gone = {each for deleted, _ in steps for each in deleted}
        rows = [row for _, inserted in steps for row in inserted if row[0] not in gone]
        insert(self.connection, rows)
        schema = ", ".join(f"{name} {type_}" for name, (_, type_, _) in TYPES.items())
        self.spark.createDataFrame(rows, schema).createOrReplaceTempView("t")
        expected = self._theirs(query, loosely=loosely)
        found: Any
        try:
            sql = translation(query, "postgres", COLUMNS)[0]
            found = of_spark(self.spark.sql(sql), loosely=loosely)
        except Exception as error:
            found = f"fails: {error}".splitlines()[0]
        failing = isinstance(found, str) and isinstance(expected, str)
        if not failing and found != expected:
            return _said(expected, found)
        said = "both fail" if failing else "equal loosely" if loosely else "equal"
        self.counts[said] += counted
        return ""

    def _theirs(self, query: str, *, loosely: bool) -> Any:
        try:
            return theirs(self.connection, query, loosely=loosely)
        except psycopg.Error as error:
            return f"fails: {error}".splitlines()[0]

    def _ours(self, lake: Lake, table: StreamTable, *, loosely: bool) -> Any:
        try:
            done = lake.refresh(table)
            self.counts[str(done.action)] += 1
            return ours(lake, "q", loosely=loosely)
        except StreamTablesError as error:
            return f"fails: {error.what}: {error.why}"


def _said(expected: Any, found: Any) -> str:
    if isinstance(expected, str) or isinstance(found, str):
        return f"PostgreSQL {expected!s:.150}, here {found!s:.250}"
    return found.difference(expected)


def main(arguments: list[str] | None = None) -> int:
    from dagster_streamtables.runtime.spark.session import open_session

    parser = argparse.ArgumentParser(description="Random queries against PostgreSQL 18.")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--static", action="store_true", help="without refreshes")
    parser.add_argument("--replay", help="SEED:NUMBER")
    options = parser.parse_args(arguments)
    numbers = range(options.start, options.start + options.queries)
    if options.replay:
        options.seed, number = map(int, options.replay.split(":"))
        numbers = range(number, number + 1)
    with tempfile.TemporaryDirectory() as folder, connected(Path(folder)) as connection:
        trials = Trials(connection, open_session(), static=options.static)
        right: list[bool] = []
        for number in numbers:
            right.append(trials.run(options.seed, number))
            if len(right) % 20 == 0:
                print(len(right), dict(trials.counts), flush=True)
        print(dict(trials.counts), *trials.reasons.most_common(8), sep="\n")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
