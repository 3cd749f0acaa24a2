"""The cases of tests/compiler/cases/ on Spark, with real Delta tables.

By default a few cases follow one window together, all over the same sources: every sixteenth of
those that DuckDB cannot run, and of every fortieth file the one with the most kinds of operators.
`-m hours` runs every case as it is written, merged and statement by statement, and on random rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES, Database, plan_of, statements
from compiler.test_cases import DOMAINS
from dagster_streamtables import Action, Lake, Refresh, StreamTable
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.operators.algebra import Step
from dagster_streamtables.runtime.spark.session import drop_views
from runtime.delta import outputs, run_on_delta, stored, write, write_from
from runtime.refreshes import maintained, refreshed

cases = [case for case in casefile.load() if not case.error]
by_file = [list(group) for _, group in groupby(cases, key=lambda case: case.file)]
SEED, WINDOWS, AT_ONCE = 1, 2, 4


def kinds(step: Step) -> set[str]:
    return {type(step).__name__}.union(*map(kinds, step.inputs))


def richest(group: list[Case]) -> Case:
    plain = [case for case in group if "TINYINT" not in case.query]
    return max(plain, key=lambda case: len(kinds(plan_of(case.query).view)))


ONLY_HERE = [case for case in cases if case.spark]
# They share a table, and `corr` fails where another case makes its values equal.
FEW = [
    case
    for case in dict.fromkeys([*map(richest, by_file[::40]), *ONLY_HERE[::16]])
    if "corr(" not in case.query
]


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.fixture
def new(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """A lake of its own for one test, of which nothing is left in Spark's memory."""
    yield Lake(tmp_path, spark=spark)
    drop_views(spark)


@dataclass(frozen=True)
class Together:
    """Stream tables of several cases in one lake, refreshed at the same time."""

    lake: Lake
    tables: dict[Case, StreamTable]

    @classmethod
    def over(cls, lake: Lake, cases: Iterable[Case]) -> Together:
        return cls(lake, {c: maintained(f"result_{i}", c.query) for i, c in enumerate(cases)})

    def refresh(self) -> dict[Case, Future[Refresh]]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return {c: pool.submit(self.lake.refresh, table) for c, table in self.tables.items()}


@pytest.fixture(scope="module")
def together(
    database: Database, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Together, dict[Case, Future[Refresh]]]:
    """The rows of all of them, and then what all of them change, in one window."""
    few = Together.over(Lake(tmp_path_factory.mktemp("few"), spark=spark), FEW)
    with database.fresh():
        for case in FEW:
            database.write(case.before)
        _write(database, few.lake, "append")
        # What fails here fails again below, in the test of its case.
        wait(few.refresh().values())
        for case in FEW:
            database.write(case.change)
        _write(database, few.lake, "overwrite")
    return few, few.refresh()


@pytest.mark.smoke("each strategy, by both writers")
@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_few_cases(case: Case, together: tuple[Together, dict[Case, Future[Refresh]]]) -> None:
    few, refreshes = together

    done = refreshes[case].result()

    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA)
    found = few.lake.check(few.tables[case])
    assert found.equal, (done, str(found), found.sample)


WAYS = [
    *(pytest.param(case, True, id=f"{case}, merged") for case in cases),
    *(
        pytest.param(case, False, id=f"{case}, statement by statement")
        for case in cases
        if len(statements(case.change)) > 1
    ),
]


@pytest.mark.hours
@pytest.mark.parametrize(("case", "merged"), WAYS)
def test_every_case(case: Case, merged: bool, database: Database, new: Lake) -> None:
    table, plan = maintained("result", case.query), compile_query(case.query, TABLES)
    with database.fresh():
        database.write(case.before)
        write_from(database, new, plan.sources, feed=merged)
    assert new.refresh(table).action is Action.REINITIALIZE
    visible = outputs(new, case.query)
    before = stored(new, "result", visible)

    for script in [case.change] if merged else statements(case.change, write="spark"):
        run_on_delta(new, script)
        assert refreshed(new, table).action in (Action.DIFFERENTIAL, Action.NO_DATA)

    after = stored(new, "result", visible)
    change = {row: after[row] - before[row] for row in after | before}
    signed = sorted((f"{weight:+d}", *row) for row, weight in change.items() if weight)
    # Noon of the cases' own day is over.
    assert _numbers(signed) == _numbers(case.expected_of_spark) or plan.is_time_dependent


def _numbers(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """An average of decimals has other digits behind the point in DuckDB, and the same value."""
    return sorted(
        tuple(each.rstrip("0").rstrip(".") if _DIGITS.fullmatch(each) else each for each in row)
        for row in rows
    )


_DIGITS = re.compile(r"-?\d+\.\d+")


@pytest.mark.hours
@pytest.mark.parametrize("group", by_file, ids=lambda group: group[0].file)
def test_random_rows(group: list[Case], database: Database, new: Lake) -> None:
    """All cases of a file over the same random rows, several windows in a row."""
    chance = random.Random(SEED)
    rows = Together.over(new, group)
    with database.fresh():
        for window in range(WINDOWS + 1):
            write_random(database, rows.lake, chance, "overwrite" if window else "append")
            for case, future in rows.refresh().items():
                done = future.result()
                found = rows.lake.check(rows.tables[case])
                assert found.equal, (str(case), done, str(found))


def write_random(database: Database, lake: Lake, chance: random.Random, mode: str) -> None:
    for table, columns in TABLES.items():
        types = columns.values()
        count = chance.randint(0, 8)
        rows = [tuple(chance.choice(DOMAINS[type_]) for type_ in types) for _ in range(count)]
        database.hold(table, rows)
    _write(database, lake, mode)


def _write(database: Database, lake: Lake, mode: str) -> None:
    for table in TABLES:
        write(lake, table, database.connection.execute(f"FROM {table}").to_arrow_table(), mode=mode)
