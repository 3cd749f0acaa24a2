"""Random histories: a short one, and tests of the generator and of its oracle.

The long runs are commands: see `qa/histories/`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable
from qa.histories import relapse
from qa.histories.creating import delta_rs
from qa.histories.history import Failure, History, Sessions, run
from qa.histories.kinds import CREATIONS, KINDS
from qa.histories.oracle import Held, Wrong, differences, lines, stored_rows
from qa.histories.roots import Root
from qa.histories.shrink import shrink
from qa.histories.steps import Step
from qa.histories.tally import Tally
from qa.histories.world import World

SEED, NUMBER, STEPS, ROOTS = 5, 1, 3, 2


@pytest.mark.long
def test_stream_tables_follow_a_random_history(spark: SparkSession) -> None:
    tally = Tally()
    history = History.random(SEED, NUMBER, STEPS, ROOTS)

    failure = run(history, Sessions(spark, spark), tally)

    assert failure is None, f"{history}\n{failure}"
    assert tally.compared > ROOTS


@pytest.mark.long
def test_the_oracle_tells_zeros_apart_and_counts_copies(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(tmp_path, spark)
    delta_rs(world, Random(1))
    query = "SELECT id, CAST('-0.0' AS DOUBLE) AS x FROM t"
    root = Root("bag", StreamTable("bag", query), by_spark=False, pace=1)
    Lake(tmp_path, spark=spark).refresh(root.table)
    versions = {"t": world.version}
    right = spark.sql(query.replace("FROM t", f"FROM {world.place}")).toArrow()
    place = str(tmp_path / "public/bag")

    write_deltalake(place, right, mode="overwrite")
    assert _wrong(world, root, versions) == []

    write_deltalake(place, right.slice(0, 1), mode="append")
    [twice] = _wrong(world, root, versions)
    assert twice.copies == 1

    ids = query.replace("FROM t", f"FROM {world.place}")
    spark.sql(f"INSERT OVERWRITE delta.`{place}` SELECT id, 0.0D AS x FROM ({ids})")
    assert {each.copies > 0 for each in _wrong(world, root, versions)} == {True, False}


def _wrong(world: World, root: Root, versions: dict[str, int]) -> list[Wrong]:
    rows = stored_rows(world, root.name)
    return differences(
        world, [Held(root.name, root.table.query, lines(rows, rows.columns))], versions
    )


def test_the_same_number_is_the_same_history() -> None:
    history = History.random(3, 14, roots=4, subscribed=True)

    assert history == History.random(3, 14, roots=4, subscribed=True)
    assert History.read(str(history)) == history
    assert [r.table.query for r in history.roots()] == [r.table.query for r in history.roots()]


def test_every_step_is_generated() -> None:
    found = {step.kind for number in range(400) for step in History.random(1, number).steps}

    assert found == {*KINDS, *CREATIONS}


def test_the_shrinker_leaves_out_what_does_not_matter() -> None:
    """Without any engine: a history fails while it holds two of its steps."""
    history = History.random(1, 2)
    needed = {history.steps[3], history.steps[7]}

    def fails(each: History) -> Failure | None:
        at = len(each.steps) - 1
        return Failure(at, "wrong rows", ("bag",)) if needed <= set(each.steps) else None

    small = shrink(history, Failure(9, "wrong rows", ("bag", "join")), fails, seconds=20)

    assert small.steps == (history.steps[0], history.steps[3], history.steps[7])
    assert small.kinds == ("bag",)


@pytest.mark.thorough
def test_the_bugs_of_the_past_can_be_put_back(tmp_path: Path) -> None:
    """Their texts are still in the modules."""
    for number, bug in enumerate(relapse.load()):
        folder = tmp_path / str(number)
        folder.mkdir()
        relapse.copy_package(folder)
        for change in bug.changes:
            change.apply(folder)


def test_a_step_reads_what_it_prints() -> None:
    assert Step.read(str(Step("insert-rows", 42))) == Step("insert-rows", 42)
