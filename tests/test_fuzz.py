"""Random queries: a short seeded run, and a test that the fuzzer finds what it should.

The long runs are commands: see `qa/fuzz/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.joins import Join
from qa.fuzz.changes import Row, Story, Window, random_story
from qa.fuzz.command import make_trial
from qa.fuzz.duck import DuckEngine
from qa.fuzz.grammar import Grammar
from qa.fuzz.outcome import Trial, Verdict
from qa.fuzz.report import Tally, as_case
from qa.fuzz.shrink import same_failure, shrink
from qa.fuzz.spark import SparkEngine
from qa.fuzz.switches import CONSTRUCTS, all_switches, only
from qa.fuzz.tree import constructs_of

SEED, NUMBERS, ON_SPARK = 1, range(30), range(4)


@pytest.fixture(scope="module")
def engine() -> DuckEngine:
    return DuckEngine()


@pytest.fixture
def wrong_joins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Joins that count a pair of two new rows twice."""

    def delta(self: Join) -> Operator:
        left, right = self.left, self.right
        return self.over(left.change, right.after) + self.over(left.after, right.change)

    monkeypatch.setattr(Join, "delta", delta)
    yield


@pytest.mark.thorough
def test_random_queries_follow_their_sources(engine: DuckEngine) -> None:
    tally = Tally(engine.name)
    for number in NUMBERS:
        trial = make_trial(SEED, number, all_switches(), whole=False)
        outcome = engine.run(trial)
        tally.add(trial, outcome)
        assert outcome.verdict is not Verdict.FAILED, f"{SEED}:{number}: {outcome}\n{trial.text}"
    assert tally.verdicts[Verdict.COMPARED] > len(NUMBERS) / 3, tally.reasons()


@pytest.mark.long
def test_random_queries_on_delta_tables(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    trials = [
        make_trial(SEED, number, all_switches(), whole=False, batch=len(ON_SPARK))
        for number in ON_SPARK
    ]
    outcomes = engine.run_many(trials)
    for number, trial, outcome in zip(ON_SPARK, trials, outcomes, strict=True):
        assert outcome.verdict is not Verdict.FAILED, f"{SEED}:{number}: {outcome}\n{trial.text}"
    compared = [outcome for outcome in outcomes if outcome.verdict is Verdict.COMPARED]
    assert len(compared) > len(trials) / 3


def test_the_same_number_is_the_same_trial() -> None:
    assert make_trial(3, 14, all_switches(), whole=False) == make_trial(
        3, 14, all_switches(), whole=False
    )


def test_every_construct_is_generated() -> None:
    found: set[str] = set()
    for number in range(1000):
        found |= constructs_of(Grammar(Random(number), all_switches()).whole())
        if found == set(CONSTRUCTS):
            break
    assert found == set(CONSTRUCTS), set(CONSTRUCTS) ^ found


@pytest.mark.long
@pytest.mark.usefixtures("wrong_joins")
def test_a_wrong_rule_is_found_and_its_case_is_small(engine: DuckEngine) -> None:
    for number in range(200):
        trial = make_trial(SEED, number, only(["join"]), whole=True)
        outcome = engine.run(trial)
        if outcome.verdict is Verdict.FAILED and outcome.detail.startswith("window"):
            break
    else:
        pytest.fail("200 queries with joins, and none noticed")

    small = shrink(trial, same_failure(engine, outcome), seconds=20)

    assert len(small.text) < 120
    [window] = small.story.windows
    assert len(window.rows) <= 2, "a row that comes to each side"
    assert not small.story.before
    case = as_case("found", small, engine.expected(small), tuple({r.table for r in window.rows}))
    assert case.count("INSERT INTO") == len({row.table for row in window.rows})
    assert "--- delta\n-- +1 | " in case


def test_the_shrinker_takes_out_what_does_not_matter() -> None:
    """Without any engine: a trial fails as long as it reads orders and one row goes."""
    query = Grammar(Random(5), only(["join", "derived table"])).whole()
    query = next(q for q in _queries() if "orders" in q.sql() and len(q.sql()) > 300)
    trial = Trial.of(query, random_story(Random(5), ("orders", "customers")))
    gone = Row("orders", ("1", "1", "1"))
    story = Story((*trial.story.before, gone), (*trial.story.windows, _going(gone)))

    def fails(each: Trial) -> bool:
        goes = any(row.sign < 0 for window in each.story.windows for row in window.rows)
        return "orders" in each.text and goes

    small = shrink(Trial.of(query, story), fails, seconds=20)

    assert len(small.text) < 60
    assert len(small.story.before) == 1
    assert [row.sign for window in small.story.windows for row in window.rows] == [-1]


def _queries() -> Iterator:
    for number in range(1000):
        yield Grammar(Random(number), only(["join", "derived table"])).whole()


def _going(row: Row) -> Window:
    return Window((Row(row.table, row.values, -1),))
