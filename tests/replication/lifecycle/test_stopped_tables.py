"""Trouble of one table stops that table; the others go on, and the told cure mends it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from dagster_streamtables import Lake
from dagster_streamtables.cli import app
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lake.publication import PublicationEntry, Publications
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.replication.lifecycle.status import TableState, TableStatus
from dagster_streamtables.replication.model.errors import PublisherProblem
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, Row, rows
from replication.lifecycle.test_crashes import killed_at
from replication.postgres.database import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T, U = "public.t", "public.u"
COMMANDS = re.compile(
    r"streamtables replications (?:alter|copy|skip) [^;:]*?(?=$|[;:(]|, |\.$)", re.M
)


@dataclass
class Pair:
    """Two tables, of which `t` comes into trouble while `u` goes on."""

    origin: Origin
    lake: Lake
    rows: dict[str, list[Row]] = field(default_factory=lambda: {"t": [], "u": []})

    def begin(self, **settings: Any) -> Pair:
        for table in self.rows:
            self.origin.create(table, {"k": "int", "v": "text"}, ["k"])
            self.add(table, 1)
        self.origin.publish("p", "t", "u")
        declared = Replication("r", self.origin.declared("p"), **settings)
        self.replications.refresh(declared)
        return self

    @property
    def replications(self) -> Replications:
        return Replications(self.lake)

    @property
    def status(self) -> TableStatus:
        return next(e for e in self.replications.read("r").tables if e.name == T)

    def add(self, table: str, k: int, v: str = "v") -> None:
        self.origin.insert(table, (k, v))
        self.rows[table].append((k, v))

    def require_equal(self, *tables: str) -> None:
        for table in tables:
            found = rows(self.lake, table, ["k", "v"])
            assert found == Counter(self.rows[table]), table

    def goes_on(self, match: str, state: TableState = TableState.STOPPED) -> StreamTablesError:
        """`t` is told to be in trouble, each time and by all, and `u` equals its origin."""
        refresh: ReplicationRefresh | None = None
        for k in (100, 101):
            self.add("u", k + len(self.rows["u"]))
            refresh = self.replications.refresh("r", strict=False)
            self.require_equal("u")
            assert [*refresh.stopped] == [T] and T not in refresh.tables
        assert refresh is not None
        with pytest.raises(StreamTablesError, match=match) as told:
            self.replications.refresh("r")
        status, whole = self.status, self.replications.read("r")
        assert (status.state, status.is_current) == (state, False)
        assert re.search(match, status.error) and status.fix and status.since
        assert whole.error and whole.errors >= 3
        found = self.replications.check("r", U)
        assert found.equal and [*found.tables] == [U]
        both = self.replications.check("r")
        assert not both.equal and both.tables[T].error and both.tables[U].equal
        assert not told.value.fix or "NAME" not in told.value.fix
        assert self.replications.copy("r", U).tables[U].copied == len(self.rows["u"])
        return told.value

    def mended(self, *, is_checked: bool = True) -> None:
        """All goes on, and both equal their origin."""
        self.replications.refresh("r")
        self.add("t", 77)
        self.add("u", 77)
        self.replications.refresh("r")
        self.require_equal("t", "u")
        assert (self.status.state, self.status.error) == (TableState.READY, "")
        assert self.replications.read("r").errors == 0
        if is_checked:
            assert self.replications.check("r").equal


def commands(told: str) -> list[list[str]]:
    """The commands that an error tells, as a shell splits them."""
    return [shlex.split(each)[1:] for each in COMMANDS.findall(told)]


def do(lake: Lake, told: str, verb: str) -> None:
    """Paste a command of an error into a shell."""
    [first, *_] = [each for each in commands(told) if each[1] == verb]
    done = CliRunner().invoke(app, first, env={"STREAMTABLES_ROOT": str(lake.root)})
    assert done.exit_code == 0, done.output


@pytest.fixture
def pair(origin: Origin, lake: Lake) -> Pair:
    return Pair(origin, lake)


@pytest.fixture
def served(database: Database, lake: Lake) -> Pair:
    return Pair(PostgresOrigin(database), lake)


def widen(origin: Origin) -> None:
    """Give `t` a column `w` at its publisher."""
    if isinstance(origin, PostgresOrigin):
        origin.database.run("ALTER TABLE t ADD COLUMN w int")
        return
    assert isinstance(origin, LakeOrigin)
    place = origin.lake.location("t")
    rows_ = pa.table({"k": [50], "v": ["v"], "w": pa.array([5], pa.int64())})
    write_deltalake(place, rows_, mode="append", schema_mode="merge")


def test_a_column_that_the_target_lacks(pair: Pair) -> None:
    pair.begin()
    widen(pair.origin)
    if isinstance(pair.origin, PostgresOrigin):
        pair.origin.insert("t", (50, "v", 5))
    pair.rows["t"].append((50, "v"))
    error = pair.goes_on('is missing replicated column "w"')
    assert killed_at(pair.lake, "r", "confirm", 1)
    do(pair.lake, error.fix, "alter")
    pair.replications.refresh("r")
    pair.require_equal("t", "u")
    assert rows(pair.lake, "t", ["k", "w"])[(50, 5)] == 1
    assert pair.replications.check("r").equal and pair.status.state is TableState.READY


def test_a_value_that_the_target_does_not_take(pair: Pair) -> None:
    pair.begin()
    small = pa.table({"k": pa.array([1], pa.int8()), "v": ["v"]})
    write_deltalake(pair.lake.location("t"), small, mode="overwrite", schema_mode="overwrite")
    pair.add("t", 1000)
    error = pair.goes_on("does not take the value 1000")
    shutil.rmtree(pair.lake.location("t"))
    do(pair.lake, error.fix, "copy")
    pair.mended()


def test_a_type_that_the_target_does_not_take(pair: Pair) -> None:
    pair.begin()
    other = pa.table({"k": pa.array([1], pa.int64()), "v": pa.array([None], pa.list_(pa.int8()))})
    write_deltalake(pair.lake.location("t"), other, mode="overwrite", schema_mode="overwrite")
    pair.add("t", 2)
    error = pair.goes_on("cannot take what is published")
    do(pair.lake, error.fix, "copy")
    pair.mended()


@pytest.mark.parametrize("again", [False, True])
def test_a_target_that_is_gone(pair: Pair, again: bool) -> None:
    pair.begin()
    pair.add("t", 2)
    there = DeltaTable(pair.lake.location("t")).to_pyarrow_table()
    shutil.rmtree(pair.lake.location("t"))
    if again:
        write_deltalake(pair.lake.location("t"), there)
    error = pair.goes_on("is not the table that was written")
    do(pair.lake, error.fix, "copy")
    pair.mended()


def test_a_target_that_is_put_back_as_it_was(pair: Pair, tmp_path: Path) -> None:
    pair.begin()
    place = Path(pair.lake.location("t"))
    place.rename(tmp_path / "away")
    pair.add("t", 2)
    pair.goes_on("is not the table that was written")
    (tmp_path / "away").rename(place)
    pair.mended()


def test_a_constraint_of_the_target(pair: Pair) -> None:
    pair.begin()
    target = DeltaTable(pair.lake.location("t"))
    target.alter.add_constraint({"small": "k < 10"})
    pair.add("t", 20)
    pair.goes_on("refuses a row")
    DeltaTable(pair.lake.location("t")).alter.drop_constraint("small")
    pair.mended()


@pytest.mark.parametrize("verb", ["skip", "alter"])
def test_a_conflict(pair: Pair, verb: str) -> None:
    pair.begin()
    mine = pa.table({"k": pa.array([2], pa.int64()), "v": ["mine"]})
    write_deltalake(pair.lake.location("t"), mine.cast(_schema(pair)), mode="append")
    pair.add("t", 2)
    error = pair.goes_on("meets a row that its target has already")
    do(pair.lake, error.fix, verb)
    if verb == "skip":
        pair.rows["t"][-1] = (2, "mine")
    pair.mended(is_checked=verb == "alter")


def _schema(pair: Pair) -> pa.Schema:
    return DeltaTable(pair.lake.location("t")).to_pyarrow_table().schema


def test_a_published_table_that_is_created_again(pair: Pair) -> None:
    pair.begin()
    pair.rows["t"].clear()
    if isinstance(pair.origin, PostgresOrigin):
        pair.origin.database.run("DROP TABLE t")
        pair.origin.create("t", {"k": "int", "v": "text"}, ["k"])
        pair.origin.add("p", "t")
    else:
        assert isinstance(pair.origin, LakeOrigin)
        shutil.rmtree(pair.origin.lake.location("t"))
        pair.origin.create("t", {"k": "int", "v": "text"}, ["k"])
    pair.add("t", 7)
    error = pair.goes_on("is another table now|has lost changes", TableState.LOST)
    assert pair.status.position is None
    do(pair.lake, error.fix, "copy")
    pair.mended()


def test_a_lost_table_is_copied_by_itself_if_that_is_wanted(pair: Pair) -> None:
    pair.begin(on_slot_lost="copy")
    pair.rows["t"].clear()
    if isinstance(pair.origin, PostgresOrigin):
        pair.origin.database.run("DROP TABLE t")
        pair.origin.create("t", {"k": "int", "v": "text"}, ["k"])
        pair.origin.add("p", "t")
    else:
        assert isinstance(pair.origin, LakeOrigin)
        shutil.rmtree(pair.origin.lake.location("t"))
        pair.origin.create("t", {"k": "int", "v": "text"}, ["k"])
    pair.add("t", 7)
    done = pair.replications.refresh("r")
    assert (done.tables[T].copied, done.tables[U].copied) == (1, None)
    pair.mended()


def test_the_only_table_is_lost(pair: Pair) -> None:
    """Nothing keeps the publisher's log then, and a copy begins anew."""
    pair.begin(stopped_deadline=timedelta(0))
    for table in ("t", "u"):
        shutil.rmtree(pair.lake.location(table))
    refresh = pair.replications.refresh("r", strict=False)
    assert {*refresh.stopped} == {T, U} and pair.origin.slots() == []
    pair.replications.copy("r", U)
    pair.replications.copy("r", T)
    pair.mended()


@pytest.mark.parametrize(
    "deadline", [None, timedelta(days=1), timedelta(0)], ids=["never", "day", "none"]
)
def test_what_a_server_keeps_for_a_stopped_table(served: Pair, deadline: timedelta | None) -> None:
    served.begin(stopped_deadline=deadline)
    assert isinstance(served.origin, PostgresOrigin)
    place = Path(served.lake.location("t"))
    away = place.with_name("away")
    place.rename(away)
    served.add("t", 2)
    before = served.origin.database.position("r")
    kept = deadline != timedelta(0)
    error = served.goes_on(
        "is not the table that was written", TableState.STOPPED if kept else TableState.LOST
    )
    moved = served.origin.database.position("r") > before
    assert moved is not kept
    assert (served.status.kept_until is not None) == (deadline == timedelta(days=1))
    assert (served.replications.lag("r").seconds > 0) is kept
    away.rename(place)
    if not kept:
        do(served.lake, error.fix, "copy")
    served.mended()


def test_small_batches_pass_over_what_waits_for_a_stopped_table(served: Pair) -> None:
    """The server sends what was applied again, as it waits for the table."""
    served.begin(max_rows=2)
    place = Path(served.lake.location("t"))
    place.rename(place.with_name("away"))
    for k in range(10, 40):
        served.add("t", k)
        served.add("u", k)
    for _ in range(3):
        refresh = served.replications.refresh("r", strict=False)
        assert [*refresh.stopped] == [T] and refresh.complete
        served.require_equal("u")
        served.add("u", 100 + len(served.rows["u"]))
    place.with_name("away").rename(place)
    served.mended()


def test_a_type_that_no_delta_table_has(served: Pair) -> None:
    served.begin(add_columns=True)
    assert isinstance(served.origin, PostgresOrigin)
    served.origin.database.run("ALTER TABLE t ADD COLUMN w interval")
    served.origin.insert("t", (2, "v", "1 day"))
    served.rows["t"].append((2, "v"))
    error = served.goes_on("types without an equal")
    do(served.lake, error.fix, "alter")
    served.replications.refresh("r")
    served.require_equal("t", "u")
    assert rows(served.lake, "t", ["k", "w"])[(2, "1 day")] == 1
    assert served.replications.check("r").equal


def test_a_value_that_no_delta_table_has(served: Pair) -> None:
    assert isinstance(served.origin, PostgresOrigin)
    served.begin()
    served.origin.database.run("CREATE TABLE d (k int PRIMARY KEY, v date)")
    served.origin.insert("d", (1, "2020-01-01"))
    served.origin.add("p", "d")
    served.replications.refresh("r")
    served.origin.insert("d", (2, "infinity"))
    served.add("u", 2)
    refresh = served.replications.refresh("r", strict=False)
    served.require_equal("t", "u")
    [error] = refresh.stopped.values()
    assert "has a value that cannot be stored" in error.what
    do(served.lake, error.fix, "alter")
    do(served.lake, error.fix, "copy")
    assert rows(served.lake, "d", ["k", "v"]) == Counter([(1, "2020-01-01"), (2, "infinity")])
    served.mended()


def test_a_value_behind_a_change_of_columns(served: Pair) -> None:
    """The batch would end before the change, where the other tables are already."""
    served.begin(add_columns=True)
    assert isinstance(served.origin, PostgresOrigin)
    served.add("t", 2)
    served.origin.database.run("ALTER TABLE t ADD COLUMN w date")
    served.origin.insert("t", (3, "v", "infinity"))
    served.rows["t"].append((3, "v"))
    error = served.goes_on("has a value that cannot be stored")
    do(served.lake, error.fix, "alter")
    do(served.lake, error.fix, "copy")
    served.require_equal("t", "u")
    assert rows(served.lake, "t", ["k", "w"])[(3, "infinity")] == 1
    assert served.replications.check("r").equal


def test_a_primary_key_that_is_dropped(served: Pair) -> None:
    served.begin()
    assert isinstance(served.origin, PostgresOrigin)
    served.origin.database.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    served.add("t", 2)
    served.goes_on("have no identity")
    served.origin.database.run("ALTER TABLE t ADD PRIMARY KEY (k)")
    served.mended()


def test_copies_that_fail(served: Pair) -> None:
    """Of three new tables one may not be read, and the filter of one fails."""
    served.begin()
    assert isinstance(served.origin, PostgresOrigin)
    database = served.origin.database
    database.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN REPLICATION")
    declared = served.replications.read("r").replication
    address = re.sub(r"//[^@/]*@", "//reader@", database.address)
    database.run("GRANT SELECT ON t, u TO reader")
    served.replications.alter(
        replace(declared, publisher=replace(declared.publisher, address=address))
    )
    for name, grant in (("secret", ""), ("fails", "GRANT SELECT ON fails TO reader"), ("w", "")):
        database.run(f"CREATE TABLE {name} (k int PRIMARY KEY)", f"INSERT INTO {name} VALUES (0)")
        if grant:
            database.run(grant)
    database.run("GRANT SELECT ON w TO reader", "ALTER PUBLICATION p ADD TABLE secret, w")
    database.run("ALTER PUBLICATION p ADD TABLE fails WHERE (1 / k > 0)")
    served.add("u", 2)
    refresh = served.replications.refresh("r", strict=False)
    assert {*refresh.stopped} == {"public.secret", "public.fails"}
    assert refresh.tables["public.w"].copied == 1
    served.require_equal("t", "u")
    found = {each.name: each for each in served.replications.read("r").tables}
    assert found["public.secret"].state is TableState.NEW and not found["public.secret"].is_current
    assert "does not allow" in found["public.secret"].error
    assert "division by zero" in found["public.fails"].error
    assert served.replications.copy("r", T).tables[T].copied == 1
    database.run(
        "GRANT SELECT ON secret TO reader",
        "ALTER PUBLICATION p SET TABLE t, u, w, secret, fails WHERE (k >= 0)",
    )
    served.replications.refresh("r")
    assert rows(served.lake, "secret") == Counter([(0,)])
    assert rows(served.lake, "fails") == Counter([(0,)])
    database.run("DROP OWNED BY reader", "DROP ROLE reader")


def test_a_table_that_does_not_exist(served: Pair) -> None:
    """It is named by mistake, or before it is created."""
    assert isinstance(served.origin, PostgresOrigin)
    for table in served.rows:
        served.origin.create(table, {"k": "int", "v": "text"}, ["k"])
        served.add(table, 1)
    both = FromPostgres(served.origin.database.address, tables=[T, U])
    served.replications.refresh(Replication("r", both))
    more = "replications alter r --add-table public.new"
    environment = {"STREAMTABLES_ROOT": str(served.lake.root)}
    done = CliRunner().invoke(app, more.split(), env=environment)
    assert done.exit_code == 0, done.output
    served.add("u", 2)
    refresh = served.replications.refresh("r", strict=False)
    served.require_equal("t", "u")
    assert "there is no table public.new" in refresh.stopped["public.new"].what
    served.origin.create("new", {"k": "int"}, ["k"])
    assert served.replications.refresh("r").tables["public.new"].copied == 0
    served.mended()


def test_a_filter_that_fails_in_the_log_stops_all_and_says_why(served: Pair) -> None:
    served.begin()
    assert isinstance(served.origin, PostgresOrigin)
    served.origin.database.run("ALTER PUBLICATION p SET TABLE t WHERE (1 / k > 0), u")
    served.add("t", 0)
    served.add("u", 2)
    with pytest.raises(PublisherProblem, match="refuses a statement") as told:
        served.replications.refresh("r")
    assert "decodes the changes of all tables together" in told.value.why
    served.origin.database.run("ALTER PUBLICATION p SET TABLE t, u")
    assert served.replications.read("r").errors == 1


def test_a_column_that_the_publication_of_a_lake_names(lake: Lake, tmp_path: Path) -> None:
    pair = Pair(LakeOrigin(tmp_path / "publisher"), lake).begin()
    known = Publications(pair.origin.lake.root)  # type: ignore[attr-defined]
    known.alter(
        "p", lambda p: p.without(["t"]).added([PublicationEntry("t", ("k", "x"), key=("k",))])
    )
    pair.add("t", 2)
    pair.goes_on('has no column "x"')
    known.alter("p", lambda p: p.without(["t"]).added([PublicationEntry("t", key=("k",))]))
    pair.mended()


def test_a_lake_loses_the_history_of_one_table(lake: Lake, tmp_path: Path) -> None:
    origin = LakeOrigin(tmp_path / "publisher")
    pair = Pair(origin, lake).begin()
    origin.update("t", "k = 1", v="'w'")
    pair.rows["t"] = [(1, "w")]
    place = Path(origin.lake.location("t"))
    table = DeltaTable(place)
    table.optimize.compact()
    there = {Path(each).name for each in DeltaTable(place).file_uris()}
    for each in [*place.glob("*.parquet"), *place.glob("_change_data/*")]:
        each.unlink() if each.name not in there else None
    error = pair.goes_on("has lost changes", TableState.LOST)
    do(lake, error.fix, "copy")
    pair.mended()


def test_a_row_filter_of_a_lake_that_fails(tmp_path: Path, spark: SparkSession) -> None:
    """It is decided by Spark, when rows come that it cannot be decided for."""
    origin = LakeOrigin(tmp_path / "publisher")
    pair = Pair(origin, Lake(tmp_path / "subscriber", spark=spark))
    for table in pair.rows:
        origin.create(table, {"k": "int", "v": "text"}, ["k"])
        pair.add(table, 1)
    origin.publish("p", "t", where="1 / k > 0")
    origin.publish("q", "u")
    pair.replications.refresh(Replication("r", origin.declared("p", "q")))
    pair.require_equal("t", "u")
    pair.add("t", 0)
    pair.goes_on("DIVIDE_BY_ZERO|by zero")
    publications = Publications(origin.lake.root)
    everything = PublicationEntry("t", key=("k",))
    publications.alter("p", lambda known: known.without(["t"]).added([everything]))
    pair.mended()


def test_the_commands_that_are_told_exist() -> None:
    """Each command of an error and of the documentation has these options."""
    root = Path(__file__).parents[3]
    texts = [*(root / "dagster_streamtables/replication").rglob("*.py")]
    told: list[list[str]] = []
    for path in [*texts, root / "docs/replication.md", root / "docs/operation.md"]:
        # A command is split over lines of the source by `" "`, with or without an f.
        text = re.sub(r"\"\s*\n\s*f?\"|'\s*\n\s*f?'", "", path.read_text())
        found = re.findall(r"streamtables (?:replications|publications) \w+[^\n`;:#)(\"']*", text)
        told += [each.split()[1:] for each in found]
    assert len(told) > 30
    group = typer.main.get_command(app)
    for words in told:
        command: Any = group
        for word in words[:2]:
            assert word in command.commands, words
            command = command.commands[word]
        known = {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
        for word in words[2:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in known, words
