"""Two columns of one type that are swapped are noticed wherever these tests compare relations.

A comparison by place calls them equal. Each comparison is given the fault of `swapped`, and must
fail; without it, it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import swapped
from changes import reading, test_random
from changes.table import Table
from cli.following import rows_of
from compiler import casefile, database as duck
from compiler.test_cases import follow_case
from dagster_streamtables import (
    FromLake,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replication,
    Replications,
)
from dagster_streamtables.replication.lake.publication_rows import LakeCopy
from named_rows import NamedRows, rows_in_order
from qa.fuzz.command import make_trial
from qa.fuzz.duck import DuckEngine
from qa.fuzz.outcome import Verdict
from qa.fuzz.switches import all_switches
from replication.apply import published
from replication.lake import test_lake_histories, test_lake_to_lake
from replication.lifecycle import origins
from replication.postgres.replica import as_text
from serve.conftest import Copy, Heard, by_name

PAIR = pa.table({"a": [1, 2, 2], "b": [10, 20, 20]})
CASE = casefile.load("scan.sql")[0]
"""It selects three columns of one type."""


@pytest.fixture
def database() -> duck.Database:
    return duck.Database()


@pytest.fixture
def swapped_on_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    create = duck.Stored._create

    def creating(self: duck.Stored, rows: str) -> None:
        create(self, rows)
        names = list(columns := self.database.columns(self.TABLE))
        other = duck.listed(swapped.exchanged(columns.items()))
        create(self, f'SELECT {duck.listed(names)} FROM "{self.TABLE}" AS t({other})')

    monkeypatch.setattr(duck.Stored, "_create", creating)


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """A table with the columns of `PAIR` swapped."""
    write_deltalake(tmp_path / "pair", swapped.swapped(PAIR))
    return str(tmp_path / "pair")


def test_rows_by_name_differ_from_those_by_place() -> None:
    one, other = NamedRows.of_arrow(PAIR), NamedRows.of_arrow(swapped.swapped(PAIR))
    assert one == NamedRows.of_arrow(PAIR.select(["b", "a"]))
    assert one != other and one.rows.total() == other.rows.total()
    assert "missing {1 | 10" in other.difference(one)
    assert rows_in_order(PAIR, "b, a") == [(10, 1), (20, 2), (20, 2)]
    assert rows_in_order(swapped.swapped(PAIR), "a, b") != rows_in_order(PAIR, "a, b")


@pytest.mark.parametrize("names", [["A", "b"], ["a"], ["a", "b", "c"]])
def test_names_are_compared_before_rows(names: list[str]) -> None:
    """Letter case too, and where there is no row."""
    rows = pa.table({name: pa.array([], pa.int64()) for name in names})
    found = NamedRows.of_arrow(rows).difference(NamedRows.of_arrow(PAIR.slice(0, 0)))
    assert found == f"columns {names}, expected ['a', 'b']"


def test_columns_of_duckdb_are_found_by_name(database: duck.Database) -> None:
    assert duck.spark_names(["b", "sum(x)", "a"], ["a", "b", "x"]) == ["b", "x", "a"]
    for there in (["a", "c"], ["a"], ["a", "b", "c"]):
        with pytest.raises(AssertionError):
            duck.spark_names(there, ["a", "b"])
    assert database.rows(database.by_name("SELECT 1 AS b, 2 AS a", ["a", "b"])) == {("2", "1"): 1}


def test_cases_on_duckdb(database: duck.Database, request: pytest.FixtureRequest) -> None:
    prepared = duck.Prepared(duck.plan_of(CASE.query))
    follow_case(prepared, CASE, database, net=True, told=True)

    request.getfixturevalue("swapped_on_duckdb")

    with database.fresh():
        for moment in ("before", "after"):
            database.hold(f"orders@{moment}", [("10", "1", "5")])
        stored = duck.Stored(database, prepared)
        with pytest.raises(
            AssertionError, match=r"missing \{10 \| 1 \| 5\}, unexpected \{1 \| 10 \| 5\}"
        ):
            stored.check()


@pytest.mark.thorough
@pytest.mark.usefixtures("swapped_on_duckdb")
def test_random_queries_on_duckdb() -> None:
    engine = DuckEngine()
    trials = (make_trial(1, n, all_switches(), whole=False) for n in range(60))
    found = [engine.run(trial) for trial in trials]
    assert any(each.verdict is Verdict.FAILED for each in found), found


@pytest.fixture
def given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped.swap_what_is_given_out(monkeypatch)


@pytest.mark.parametrize("swap", [False, True])
def test_histories_of_subscriptions(swap: bool, request: pytest.FixtureRequest) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.string()), ("f", pa.string())])
    steps = [("insert", [(1, "a", "b"), (2, "c", "d")]), ("delete", "k = 1")]
    if swap:
        request.getfixturevalue("given_out")
    with fails(swap):
        test_random.follows(steps, feed=True, first=0, schema=schema)


@pytest.mark.usefixtures("given_out")
def test_contents_of_a_subscription(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    table = Table.new(lake.location("t"), PAIR.schema)
    table.insert((1, 10))
    rows = reading.read(lake, "t")
    assert rows == [(1, 1, 10, 1)]
    assert reading.contents(rows, 1) != table.rows(1)


def test_what_a_browser_or_a_shell_is_given() -> None:
    added = {"_timestamp": 1, "_diff": 1}
    rows = [{"a": 1, "b": 10}, {"a": 10, "b": 1}, {"b": 10, "a": 1}]
    right, wrong, reordered = (Copy(), Copy(), Copy())
    for copy, row in zip((right, wrong, reordered), rows, strict=True):
        copy.take(Heard("change", "1", [added | row]))
    assert right.rows == reordered.rows == Counter([by_name(rows[0])]) != wrong.rows
    line = '{"_timestamp": 1, "_diff": 1, %s}'
    assert rows_of(line % '"b": 10, "a": 1') == rows_of(line % '"a": 1, "b": 10') == [(1, 1, 1, 10)]
    assert rows_of(line % '"b": 1, "a": 10') == [(1, 1, 10, 1)]


class _Swapped:
    """The rows of a copy with two columns swapped."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __call__(self, copy: LakeCopy, table: str) -> pa.RecordBatchReader:
        return swapped.swapped(self.rows(copy, table).read_all()).to_reader()


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("history", [test_lake_histories, test_lake_to_lake])
def test_copies_of_a_lake(
    history: Any, swap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if swap:
        rows = LakeCopy.rows
        monkeypatch.setattr(LakeCopy, "rows", lambda *given: _Swapped(rows)(*given))
    where: Any = tmp_path if history is test_lake_to_lake else Lake(tmp_path)
    with fails(swap):
        history.require_equal(where, 1, test_lake_histories.NOBODY, filtered=False, commits=4)


def test_a_replicated_table_is_compared_with_its_origin(tmp_path: Path) -> None:
    origin, lake = Lake(tmp_path / "origin"), Lake(tmp_path / "lake")
    write_deltalake(origin.location("t"), PAIR)
    Publications(origin.root).create(Publication("p", (PublicationEntry("t"),)))
    replications = Replications(lake)
    replications.create(Replication("r", FromLake(origin.root, ("p",))))
    replications.refresh("r")
    assert replications.check("r").equal
    target = DeltaTable(lake.location("t"))
    assert origins.rows(lake, "t") == Counter([(1, 10), (2, 20), (2, 20)])

    write_deltalake(target, swapped.swapped(pa.table(target.to_pyarrow_table())), mode="overwrite")

    found = replications.check("r").tables["public.t"]
    assert (found.equal, found.missing, found.unexpected) == (False, 3, 3)
    assert origins.rows(lake, "t") == Counter([(10, 1), (20, 2), (20, 2)])


def test_targets_of_changes(pair: str) -> None:
    assert published.stored(pair) != published.counted(PAIR.to_pylist())
    reordered = PAIR.select(["b", "a"]).to_pylist()
    assert published.counted(reordered) == published.counted(PAIR.to_pylist())


def test_rows_of_a_publisher() -> None:
    assert as_text({"a": 1, "b": 10}) == as_text({"b": 10, "a": 1}) != as_text({"a": 10, "b": 1})


@contextmanager
def fails(expected: bool) -> Iterator[None]:
    """An assertion fails inside, or none does."""
    if not expected:
        yield
        return
    with pytest.raises(AssertionError):
        yield
