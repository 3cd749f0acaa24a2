"""Trouble of one table stops that table; the others go on, and the told cure mends it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from dagster_streamtables import Lake
from dagster_streamtables.cli import app
from dagster_streamtables.errors import PublisherProblem, StreamTablesError
from dagster_streamtables.replication.lake.publication import PublicationEntry, Publications
from dagster_streamtables.replication.lifecycle.publisher_declaration import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationRefresh,
    TableState,
    TableStatus,
)
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, Row, rows
from replication.lifecycle.test_crashes import killed_at
from replication.postgres.database import Database

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
            self.origin.create(table)
            self.add(table, 1)
        self.origin.publish("p", "t", "u")
        self.replications.refresh(Replication("r", self.origin.declared("p"), **settings))
        return self

    def alter(self, **settings: Any) -> None:
        declared = self.replications.read("r").replication
        self.replications.alter(replace(declared, **settings))

    @property
    def replications(self) -> Replications:
        return Replications(self.lake)

    @property
    def place(self) -> Path:
        """Of the target of `t`."""
        return Path(self.lake.location("t"))

    def overwrite(self, k: list[int], v: list[Any], types: tuple[Any, Any]) -> None:
        """Let the target of `t` have other rows of other types."""
        table = pa.table({"k": pa.array(k, types[0]), "v": pa.array(v, types[1])})
        write_deltalake(self.place, table, mode="overwrite", schema_mode="overwrite")

    def create_again(self) -> None:
        """Let another table take the place of `t` at its publisher."""
        self.rows["t"].clear()
        if isinstance(self.origin, PostgresOrigin):
            self.origin.database.run("DROP TABLE t")
        else:
            shutil.rmtree(self.origin.lake.location("t"))
        self.origin.create("t")
        if isinstance(self.origin, PostgresOrigin):
            self.origin.add("p", "t")
        self.add("t", 7)

    @property
    def status(self) -> TableStatus:
        return next(e for e in self.replications.read("r").tables if e.name == T)

    def add(self, table: str, k: int, v: str = "v") -> None:
        self.origin.insert(table, (k, v))
        self.rows[table].append((k, v))

    def require_equal(self, *tables: str) -> None:
        for table in tables:
            assert rows(self.lake, table, ["k", "v"]) == Counter(self.rows[table]), table

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

    def is_mended_by_a_copy(self, match: str, state: TableState = TableState.STOPPED) -> None:
        """The command that the error tells is the cure."""
        do(self.lake, self.goes_on(match, state).fix, "copy")
        self.mended()

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
    run(lake, first)


def run(lake: Lake, command: list[str]) -> None:
    done = CliRunner().invoke(app, command, env={"STREAMTABLES_ROOT": str(lake.root)})
    assert done.exit_code == 0, done.output


@pytest.fixture
def pair(origin: Origin, lake: Lake) -> Pair:
    return Pair(origin, lake).begin()


@pytest.fixture
def served(database: Database, lake: Lake) -> Pair:
    return Pair(PostgresOrigin(database), lake).begin()


def widen(origin: Origin) -> None:
    """Give `t` a column `w` at its publisher."""
    if isinstance(origin, PostgresOrigin):
        origin.database.run("ALTER TABLE t ADD COLUMN w int")
        return
    place = origin.lake.location("t")
    rows_ = pa.table({"k": [50], "v": ["v"], "w": pa.array([5], pa.int64())})
    write_deltalake(place, rows_, mode="append", schema_mode="merge")


def test_a_column_that_the_target_lacks(pair: Pair) -> None:
    widen(pair.origin)
    if isinstance(pair.origin, PostgresOrigin):
        pair.origin.insert("t", (50, "v", 5))
    pair.rows["t"].append((50, "v"))
    error = pair.goes_on('is missing replicated column "w"')
    assert killed_at(pair.lake, "confirm", 1)
    do(pair.lake, error.fix, "alter")
    pair.replications.refresh("r")
    pair.require_equal("t", "u")
    assert rows(pair.lake, "t", ["k", "w"])[(50, 5)] == 1
    assert pair.replications.check("r").equal and pair.status.state is TableState.READY


def test_a_value_that_the_target_does_not_take(pair: Pair) -> None:
    pair.overwrite([1], ["v"], (pa.int8(), pa.string()))
    pair.add("t", 1000)
    error = pair.goes_on("does not take the value 1000")
    shutil.rmtree(pair.place)
    do(pair.lake, error.fix, "copy")
    pair.mended()


def test_a_type_that_the_target_does_not_take(pair: Pair) -> None:
    pair.overwrite([1], [None], (pa.int64(), pa.list_(pa.int8())))
    pair.add("t", 2)
    pair.is_mended_by_a_copy("cannot store published values")


@pytest.mark.parametrize("again", [False, True])
def test_a_target_that_is_gone(pair: Pair, again: bool) -> None:
    pair.add("t", 2)
    there = DeltaTable(pair.place).to_pyarrow_table()
    shutil.rmtree(pair.place)
    if again:
        write_deltalake(pair.place, there)
    pair.is_mended_by_a_copy("is not the table that was written")


def test_a_target_that_is_put_back_as_it_was(pair: Pair, tmp_path: Path) -> None:
    pair.place.rename(tmp_path / "away")
    pair.add("t", 2)
    pair.goes_on("is not the table that was written")
    (tmp_path / "away").rename(pair.place)
    pair.mended()


def test_a_constraint_of_the_target(pair: Pair) -> None:
    DeltaTable(pair.place).alter.add_constraint({"small": "k < 10"})
    pair.add("t", 20)
    pair.goes_on("refuses a row")
    DeltaTable(pair.place).alter.drop_constraint("small")
    pair.mended()


@pytest.mark.parametrize("verb", ["skip", "alter"])
def test_a_conflict(pair: Pair, verb: str) -> None:
    mine = pa.table({"k": pa.array([2], pa.int64()), "v": ["mine"]})
    schema = DeltaTable(pair.place).to_pyarrow_table().schema
    write_deltalake(pair.place, mine.cast(schema), mode="append")
    pair.add("t", 2)
    do(pair.lake, pair.goes_on("conflicts with a row that its target already has").fix, verb)
    if verb == "skip":
        pair.rows["t"][-1] = (2, "mine")
    pair.mended(is_checked=verb == "alter")


def test_a_published_table_that_is_created_again(pair: Pair) -> None:
    pair.create_again()
    error = pair.goes_on("was replaced by another table|has lost changes", TableState.LOST)
    assert pair.status.position is None
    do(pair.lake, error.fix, "copy")
    pair.mended()


def test_a_lost_table_is_copied_by_itself_if_that_is_wanted(pair: Pair) -> None:
    pair.alter(on_slot_lost="copy")
    pair.create_again()
    done = pair.replications.refresh("r")
    assert (done.tables[T].copied, done.tables[U].copied) == (1, None)
    pair.mended()


def test_the_only_table_is_lost(pair: Pair) -> None:
    """Nothing keeps the publisher's log then, and a copy begins anew."""
    pair.alter(stopped_deadline=timedelta(0))
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
def test_what_a_server_keeps_for_a_stopped_table(
    served: Pair, database: Database, deadline: timedelta | None
) -> None:
    served.alter(stopped_deadline=deadline)
    away = served.place.rename(served.place.with_name("away"))
    served.add("t", 2)
    before = database.position("r")
    kept = deadline != timedelta(0)
    state = TableState.STOPPED if kept else TableState.LOST
    error = served.goes_on("is not the table that was written", state)
    assert (database.position("r") > before) is not kept
    assert (served.status.kept_until is not None) == (deadline == timedelta(days=1))
    assert (served.replications.lag("r").seconds > 0) is kept
    away.rename(served.place)
    if not kept:
        do(served.lake, error.fix, "copy")
    served.mended()


def test_small_batches_pass_over_what_waits_for_a_stopped_table(served: Pair) -> None:
    """The server sends what was applied again, as it waits for the table."""
    served.alter(max_rows=2)
    away = served.place.rename(served.place.with_name("away"))
    for k in range(10, 40):
        served.add("t", k)
        served.add("u", k)
    for _ in range(3):
        refresh = served.replications.refresh("r", strict=False)
        assert [*refresh.stopped] == [T] and refresh.complete
        served.require_equal("u")
        served.add("u", 100 + len(served.rows["u"]))
    away.rename(served.place)
    served.mended()


@pytest.mark.parametrize(
    ("type_", "value", "match", "verbs"),
    [
        ("interval", "1 day", "types without an equal", ["alter"]),
        # The batch would end before the change of columns, where the other tables are already.
        ("date", "infinity", "has a value that cannot be stored", ["alter", "copy"]),
    ],
)
def test_a_new_column_that_no_delta_table_has(
    served: Pair, database: Database, type_: str, value: str, match: str, verbs: list[str]
) -> None:
    served.alter(add_columns=True)
    served.add("t", 2)
    database.run(f"ALTER TABLE t ADD COLUMN w {type_}")
    served.origin.insert("t", (3, "v", value))
    served.rows["t"].append((3, "v"))
    error = served.goes_on(match)
    for verb in verbs:
        do(served.lake, error.fix, verb)
    served.replications.refresh("r")
    served.require_equal("t", "u")
    assert rows(served.lake, "t", ["k", "w"])[(3, value)] == 1
    assert served.replications.check("r").equal


def test_a_value_that_no_delta_table_has(served: Pair, database: Database) -> None:
    database.run("CREATE TABLE d (k int PRIMARY KEY, v date)")
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


def test_a_primary_key_that_is_dropped(served: Pair, database: Database) -> None:
    database.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    served.add("t", 2)
    served.goes_on("have no identity")
    database.run("ALTER TABLE t ADD PRIMARY KEY (k)")
    served.mended()


def test_copies_that_fail(served: Pair, database: Database) -> None:
    """Of three new tables one may not be read, and the filter of one fails."""
    database.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN REPLICATION")
    address = re.sub(r"//[^@/]*@", "//reader@", database.address)
    database.run("GRANT SELECT ON t, u TO reader")
    served.alter(publisher=replace(served.origin.declared("p"), address=address))
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


def test_a_table_that_does_not_exist(database: Database, lake: Lake) -> None:
    """It is named by mistake, or before it is created."""
    served = Pair(PostgresOrigin(database), lake)
    for table in served.rows:
        served.origin.create(table)
        served.add(table, 1)
    both = FromPostgres(database.address, tables=[T, U])
    served.replications.refresh(Replication("r", both))
    run(lake, ["replications", "alter", "r", "--add-table", "public.new"])
    served.add("u", 2)
    refresh = served.replications.refresh("r", strict=False)
    served.require_equal("t", "u")
    assert "there is no table public.new" in refresh.stopped["public.new"].what
    served.origin.create("new", {"k": "int"}, ["k"])
    assert served.replications.refresh("r").tables["public.new"].copied == 0
    served.mended()


def test_a_filter_that_fails_in_the_log_stops_all_and_says_why(
    served: Pair, database: Database
) -> None:
    database.run("ALTER PUBLICATION p SET TABLE t WHERE (1 / k > 0), u")
    served.add("t", 0)
    served.add("u", 2)
    with pytest.raises(PublisherProblem, match="refuses a statement") as told:
        served.replications.refresh("r")
    assert "decodes the changes of all tables together" in told.value.why
    database.run("ALTER PUBLICATION p SET TABLE t, u")
    assert served.replications.read("r").errors == 1


def publish_as(shop: LakeOrigin, entry: PublicationEntry) -> None:
    """Give `t` another entry in its publication."""
    Publications(shop.lake.root).alter(
        "p", lambda known: known.without(["t"]).with_entries([entry])
    )


def test_a_column_that_the_publication_of_a_lake_names(shop: LakeOrigin, lake: Lake) -> None:
    pair = Pair(shop, lake).begin()
    publish_as(shop, PublicationEntry("t", ("k", "x"), key=("k",)))
    pair.add("t", 2)
    pair.goes_on('has no column "x"')
    publish_as(shop, PublicationEntry("t", key=("k",)))
    pair.mended()


def test_a_lake_loses_the_history_of_one_table(shop: LakeOrigin, lake: Lake) -> None:
    pair = Pair(shop, lake).begin()
    shop.update("t", "k = 1", v="'w'")
    pair.rows["t"] = [(1, "w")]
    place = Path(shop.lake.location("t"))
    DeltaTable(place).optimize.compact()
    there = {Path(each).name for each in DeltaTable(place).file_uris()}
    for each in [*place.glob("*.parquet"), *place.glob("_change_data/*")]:
        each.unlink() if each.name not in there else None
    pair.is_mended_by_a_copy("has lost changes", TableState.LOST)


def test_a_row_filter_of_a_lake_that_fails(
    shop: LakeOrigin, tmp_path: Path, spark: SparkSession
) -> None:
    """It is decided by Spark, when rows come that it cannot be decided for."""
    pair = Pair(shop, Lake(tmp_path / "subscriber", spark=spark))
    for table in pair.rows:
        shop.create(table)
        pair.add(table, 1)
    shop.publish("p", "t", where="1 / k > 0")
    shop.publish("q", "u")
    pair.replications.refresh(Replication("r", shop.declared("p", "q")))
    pair.require_equal("t", "u")
    pair.add("t", 0)
    pair.goes_on("DIVIDE_BY_ZERO|by zero")
    publish_as(shop, PublicationEntry("t", key=("k",)))
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
