"""The cases of tests/cases/ on Spark, with real Delta tables, as they are written.

By default one case of each shape of plan runs here, since the same compiled steps ran on DuckDB for
every case; `-m long` runs all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import casefile
from casefile import Case
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.operators import Step
from database import TABLES, Database
from runtime.delta import refreshed, run_on_delta, stored, write_from

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

cases = [case for case in casefile.load() if not case.error]


def shape(case: Case) -> tuple[str, ...]:
    """How a case's change enters the table, and the operators that have laws of their own."""

    def kinds(step: Step) -> set[str]:
        return {type(step).__name__}.union(*map(kinds, step.inputs))

    plan = compile_query(case.query, TABLES)
    return (plan.entry, *sorted(kinds(plan.view) - {"Filter", "Project", "Scan"}))


ONE_OF_EACH = list({shape(case): case for case in reversed(cases)}.values())


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_one_case_of_each_shape(
    case: Case, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    follow(case, database, spark, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "snapshots"])
@pytest.mark.parametrize("case", cases, ids=str)
def test_every_case(
    case: Case, feed: bool, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    follow(case, database, spark, tmp_path, feed=feed)


def follow(
    case: Case, database: Database, spark: SparkSession, folder: Path, *, feed: bool = True
) -> None:
    lake = Lake(folder, spark=spark)
    # A change of two rows out of three is no reason to recompute here: the change is the test.
    table = StreamTable("result", case.query, differential_max_change_ratio=0)
    plan = compile_query(case.query, TABLES)
    with database.fresh():
        database.run(case.before)
        write_from(database, lake, plan.sources, feed=feed)
    assert lake.refresh(table).action is Action.REINITIALIZE
    visible = list(plan.schema)
    before = stored(lake, "result", visible)
    run_on_delta(spark, lake, case.change)

    done = refreshed(lake, table)

    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA)
    after = stored(lake, "result", visible)
    change = {row: after[row] - before[row] for row in after | before}
    signed = sorted((f"{weight:+d}", *row) for row, weight in change.items() if weight)
    assert signed == case.expected
