"""A subscription that is cut anywhere goes on where it was cut: nothing is lost, nothing twice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from changes.reading import contents, plain, ready, sorted_within
from changes.table import Table
from dagster_streamtables import Lake, Subscription, subscribe

COUNT = "SELECT v, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY v"
COMMITS = 50
_RESTORE, _ADD = 30, 20
RELATIONS = [
    pytest.param("t", id="table"),
    # A query takes a second of Spark for each cut.
    pytest.param(COUNT, id="select", marks=[pytest.mark.spark, pytest.mark.long]),
]
SELECT = "SELECT k, v FROM t WHERE k > 0"
TABLE_OR_QUERY = pytest.mark.parametrize(
    "relation", ["t", pytest.param(SELECT, id="select", marks=pytest.mark.long)]
)


def fifty_commits(t: Table) -> Iterator[int]:
    """Every kind of commit, one at a time, in a random order that is always the same."""
    chance = random.Random(5)
    ways = ["insert", "insert", "update", "delete", "merge", "merge", "compact", "overwrite"]
    for n in range(1, COMMITS + 1):
        way = chance.choice(ways)
        rows = [(chance.randrange(9), chance.choice("abc")) for _ in range(4)]
        keyed = list({row[0]: row for row in rows}.values())
        key, value = rows[0]
        if n == _RESTORE:
            t.restore(_RESTORE - 7)
        elif n == _ADD:
            t.add_column("extra", "integer")
        elif way == "insert":
            t.insert(*rows)
        elif way == "merge":
            t.merge(*keyed)
        elif way == "overwrite":
            t.overwrite(*rows)
        elif way == "compact":
            t.compact()
        elif way == "update":
            t.update(f"v = '{value}'", k="k + 1")
        else:
            t.delete(f"k = {key} OR v = '{value}'")
        if t.version < n:  # it changed nothing
            t.insert(*rows)
        assert t.version == n
        yield n


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("fifty"))
    t = Table.new(lake.location("t"))
    list(fifty_commits(t))
    return lake


def rows_and_tokens(subscription: Subscription) -> list[tuple[list[Any], str | None]]:
    """Each batch, and where to go on after it."""
    return [(sorted_within(plain(batch)), subscription.token) for batch in subscription]


@pytest.mark.long
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_cut_by_versions(history: Lake, relation: str) -> None:
    end = COMMITS + 1
    with subscribe(history, relation, as_of=0, up_to=end) as whole:
        parts = rows_and_tokens(whole)
    table = Table(history.location("t"))
    assert len(parts) > COMMITS / 2
    if relation == "t":
        rows = [row for part, _ in parts for row in part]
        for version in range(end):
            assert contents(rows, version) == table.rows(version, ["k", "v"]), version

    # What comes after each cut leads to the next one, and so to the end.
    for (_, token), (expected, after) in itertools.pairwise(parts):
        with subscribe(history, relation, resume=token, up_to=end) as rest:
            assert sorted_within(plain(next(iter(rest)))) == expected
            assert rest.token == after
    with subscribe(history, relation, resume=parts[-1][1], up_to=end) as rest:
        assert ready(rest) == []


@pytest.mark.long
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_cut_by_versions_with_a_slot(history: Lake, relation: str) -> None:
    end, name = COMMITS + 1, f"cut_{'table' if relation == 't' else 'select'}"
    with subscribe(history, relation, as_of=0, up_to=end) as whole:
        parts = [rows for rows, _ in rows_and_tokens(whole)]

    found = []
    for n, _ in enumerate(parts):
        with subscribe(history, relation, slot=name, as_of=0, up_to=end) as part:
            found.append(sorted_within(plain(next(iter(part)))))
            part.ack()
            # What is read and not acknowledged comes again.
            if n % 5 == 0 and n + 1 < len(parts):
                assert sorted_within(plain(next(iter(part)))) == parts[n + 1]

    assert found == parts


@TABLE_OR_QUERY
def test_a_column_that_was_moved(spark: SparkSession, lake: Lake, t: Table, relation: str) -> None:
    t.insert((1, "a"))
    with subscribe(lake, relation, slot="s") as first:
        assert ready(first) == [(1, 1, 1, "a")]
        first.ack()
        token = first.token
    spark.sql(f"ALTER TABLE delta.`{t.location}` ALTER COLUMN v FIRST")
    t.insert((2, "b"))

    for options in ({"resume": token}, {"slot": "s"}):
        with subscribe(lake, relation, **options) as again:
            assert again.schema.names[2:] == ["k", "v"]
            assert ready(again) == [(3, 1, 2, "b")]


@pytest.mark.long
@TABLE_OR_QUERY
def test_a_column_that_was_dropped_and_added_between_two_looks(
    spark: SparkSession, lake: Lake, relation: str
) -> None:
    """No file moves, and every row has another value."""
    place = f"delta.`{lake.location('t')}`"
    spark.sql(
        f"CREATE TABLE {place} (k BIGINT, v STRING) USING delta "
        "TBLPROPERTIES (delta.columnMapping.mode = 'name')"
    )
    spark.sql(f"INSERT INTO {place} VALUES (1, 'a')")
    with subscribe(lake, relation, clock="ms") as followed:
        ready(followed)
        spark.sql(f"ALTER TABLE {place} DROP COLUMN v")
        spark.sql(f"ALTER TABLE {place} ADD COLUMN (v STRING)")
        changed = {row[1:] for row in ready(followed)}
    assert changed == {(-1, 1, "a"), (1, 1, None)}


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_cut_by_milliseconds(lake: Lake, relation: str) -> None:
    """By this clock a commit has a time of its own only if somebody looked before the next one."""
    t = Table.new(lake.location("t"))
    commits = fifty_commits(t)
    next(commits)
    first = subscribe(lake, relation, clock="ms")
    parts = [(sorted_within(ready(first)), first.token)]
    looked = ((ready(first), first.token) for _ in commits)
    parts += [(sorted_within(rows), token) for rows, token in looked if rows]
    assert len(parts) > COMMITS / 2
    assert len({rows[0][0] for rows, _ in parts}) == len(parts)
    if relation == "t":
        every = [row for rows, _ in parts for row in rows]
        assert contents(every, parts[-1][0][0][0]) == t.rows(t.version, ["k", "v"])

    for (_, token), (expected, after) in list(itertools.pairwise(parts)):
        with subscribe(lake, relation, resume=token) as rest:
            assert sorted_within(plain(next(iter(rest)))) == expected
            assert rest.token == after
    with subscribe(lake, relation, clock="ms", as_of=parts[0][0][0][0]) as again:
        assert sorted_within(ready(again)) == [row for rows, _ in parts for row in rows]
