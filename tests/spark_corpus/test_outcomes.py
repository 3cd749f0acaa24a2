"""Each outcome of a query, on a file of a few statements, with planted faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from qa.spark_corpus import limits, round as rounds
from qa.spark_corpus.command import _sessions
from qa.spark_corpus.files import FileRun
from qa.spark_corpus.follow import Followed, Refreshed
from qa.spark_corpus.oracle import Held
from qa.spark_corpus.outcome import Outcome, Result
from qa.spark_corpus.plain import Plain
from qa.spark_corpus.relations import Base
from qa.spark_corpus.round import Options, Sessions
from qa.spark_corpus.statements import read_file

pytestmark = pytest.mark.spark

FILE = """
CREATE TEMPORARY VIEW T AS SELECT * FROM VALUES (1, 'x', 1.5D), (2, 'y', 2.5D), (3, 'x', NULL)
  AS T(a, b, c);
CREATE TEMPORARY VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE TEMPORARY VIEW spans AS SELECT interval 1 day AS d;
SELECT t.a, v.n, t.a + v.n FROM t JOIN v USING (b);
SELECT a, a FROM t WHERE c IS NOT NULL;
SELECT a, rand() AS r FROM t;
SELECT nothing FROM t;
SELECT d FROM spans;
SELECT 1;
DROP VIEW t;
CREATE TEMPORARY VIEW t AS SELECT * FROM VALUES (7) AS t(other);
SELECT sum(other) AS s FROM t;
"""


@pytest.fixture
def sessions() -> Sessions:
    return _sessions(Options())


def run(tmp_path: Path, text: str, sessions: Sessions, **options: object) -> list[Result]:
    (tmp_path / "small.sql").write_text(text)
    file = read_file(tmp_path, "small.sql")
    given = replace(Options(seconds=120), **options)  # type: ignore[arg-type]
    run_ = FileRun(file, {}, sessions, given, tmp_path / "lakes", lambda _: True)
    return run_.run().results


@pytest.mark.parametrize(
    "follower",
    ["refresh", *(pytest.param(n, marks=pytest.mark.long) for n in ("subscription", "plan"))],
)
def test_a_file_through_all_windows(follower: str, tmp_path: Path, sessions: Sessions) -> None:
    results = run(tmp_path, FILE, sessions, follower=follower, partitioned=True)

    found = {each.number: (each.outcome, each.windows) for each in results}
    assert found == {
        4: (Outcome.EXACT, 3),
        5: (Outcome.EXACT, 3),
        6: (Outcome.REFUSED, 0),
        7: (Outcome.REFUSED_BY_SPARK, 0),
        8: (Outcome.NOT_STORABLE, 0),
        12: (Outcome.EXACT, 3),
    }, [each.detail for each in results]
    assert "AS `c3`" in results[0].text
    assert "AS named (`a`, `c2`)" in results[1].text or "a AS `c2`" in results[1].text


class _Losing(Refreshed):
    def follow(self) -> Followed:
        followed = super().follow()
        return replace(followed, rows=followed.rows.slice(1))


class _Swapping(Refreshed):
    def follow(self) -> Followed:
        followed = super().follow()
        return replace(followed, columns=dict(reversed([*followed.columns.items()])))


class _Recomputing(Refreshed):
    def follow(self) -> Followed:
        return replace(super().follow(), in_full="it could not be computed")


class _Failing(Refreshed):
    def follow(self) -> Followed:
        raise ValueError("a row of 3 columns")


class _Waiting(Refreshed):
    def follow(self) -> Followed:
        time.sleep(100)
        raise AssertionError("it should have been stopped")


@pytest.mark.parametrize(
    ("follower", "outcome", "reason"),
    [
        (_Losing, Outcome.WRONG, "other rows"),
        (_Swapping, Outcome.WRONG, "other columns"),
        (_Recomputing, Outcome.FELL_BACK, "StreamTablesError: it could not be computed"),
        (_Failing, Outcome.RAW, "ValueError: a row of N columns"),
        (_Waiting, Outcome.SLOW, "more than 20 s in a window"),
    ],
)
def test_a_planted_fault_has_its_outcome(
    follower: type[Refreshed], outcome: Outcome, reason: str,
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(rounds.FOLLOWERS, "planted", follower)  # type: ignore[arg-type]
    monkeypatch.setattr(limits, "_HARD", 1)  # no call is interrupted here, only a sleep
    text = "CREATE TEMPORARY VIEW t AS VALUES (1, 2), (3, 4) AS t(a, b); SELECT a, b FROM t"
    seconds = 20.0 if outcome is Outcome.SLOW else 120.0

    [result] = run(tmp_path, text, sessions, follower="planted", seconds=seconds)

    assert (result.outcome, result.reason) == (outcome, reason), result.detail


@pytest.fixture
def plain(sessions: Sessions) -> Iterator[Plain]:
    made = Plain(sessions.plain)
    yield made
    made.forget()


@pytest.mark.parametrize(
    ("text", "arbitrary"),
    [
        ("SELECT first(a) AS x FROM t", True),
        ("SELECT * FROM t LIMIT 2", True),
        ("SELECT a, row_number() OVER (ORDER BY b) AS n FROM t", True),
        ("SELECT a FROM t ORDER BY a LIMIT 2", False),
        ("SELECT b, sum(a) AS s FROM t GROUP BY b", False),
    ],
)
def test_arbitrary_is_what_spark_answers_otherwise_over_another_order(
    text: str, arbitrary: bool, plain: Plain
) -> None:
    rows = pa.table({"a": pa.array(range(20), pa.int32()), "b": ["x", "y"] * 10})
    schema = plain.session.createDataFrame(rows).schema
    plain.give([(Base("t", rows, schema), rows)])
    answer = plain.session.sql(text)
    held = Held("st_1", text, answer.schema, answer.toArrow())

    assert plain.is_arbitrary(held, []) is arbitrary
    assert plain.differences([held]) == {"st_1": []}


def test_sums_of_floats_may_differ_in_their_last_digits(plain: Plain) -> None:
    rows = pa.table({"d": [0.1, 0.2, 0.3]})
    schema = plain.session.createDataFrame(rows).schema
    plain.give([(Base("t", rows, schema), rows)])
    text = "SELECT sum(d) AS s FROM t"
    schema = plain.session.sql(text).schema

    def held(value: float) -> Held:
        return Held("st_1", text, schema, pa.table({"s": [value]}))

    assert plain.is_rounding(held(0.6)) is plain.is_rounding(held(0.6000000000000001)) is True
    assert not plain.is_rounding(held(0.61))


def test_the_product_is_given_no_table_in_another_case_by_default(
    tmp_path: Path, sessions: Sessions
) -> None:
    [result] = run(
        tmp_path, "CREATE TABLE Tt AS SELECT 1 AS a; SELECT tT.a FROM tT", sessions, windows=0
    )

    assert result.text == "SELECT tT.a FROM Tt"
