"""Targets that only Spark writes: the same rows as by the model, one commit for each position."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagster_streamtables.errors import (
    ConflictingCommit,
    ReplicationConflict,
    SourceProblem,
    TargetProblem,
)
from dagster_streamtables.replication.apply import apply_changes as module
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.contract import Choices
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target import spark_rows, target_commits
from dagster_streamtables.replication.target.target_table import (
    ReplicationTarget,
    log_of,
    open_target,
)
from dagster_streamtables.runtime.spark.session import open_session
from replication.apply.published import (
    ORIGIN,
    Model,
    Transactions,
    changes,
    counted,
    left,
    position_of,
)
from replication.apply.test_exactly_once import lose_answers

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
KEYED = PublishedTable("public.t", SCHEMA, ("id",))
BAG = PublishedTable("public.t", SCHEMA, None)
OWN = ("_metadata", "__METADATA")
COLUMNS = "own STRING, v STRING, id BIGINT, n INT"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"
TARGETS: Mapping[str, tuple[str, str]] = {
    "deletion vectors": (COLUMNS, f"TBLPROPERTIES ({VECTORS})"),
    "mapped columns": (COLUMNS, f"TBLPROPERTIES ({MAPPED}, {VECTORS})"),
    "row tracking": (COLUMNS, "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"),
    "widened types": (COLUMNS, "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"),
    "checkpoints v2": (COLUMNS, "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')"),
    "times in commits": (
        COLUMNS, "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"),
    "clustered": (COLUMNS, "CLUSTER BY (id)"),
    "partitioned": (COLUMNS, f"PARTITIONED BY (n) TBLPROPERTIES ({MAPPED})"),
}  # fmt: skip


class Place:
    """A table of Spark's, and a target in it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.target = ReplicationTarget(str(path), "shop", ORIGIN, session=lambda: spark)

    def sql(self, text: str) -> Any:
        return self.spark.sql(text.replace("{t}", f"delta.`{self.path}`")).collect()

    def create(self, columns: str, more: str = "") -> None:
        self.sql(f"CREATE TABLE {{t}} ({columns}) USING delta {more}")

    def rows(self, *names: str) -> Any:
        rows = self.spark.read.format("delta").load(str(self.path))
        return counted(rows.select(*names or ["*"]).toArrow().to_pylist())

    def version(self) -> int:
        return DeltaTable(self.path).version()

    def fill(self, rows: list[dict[str, Any]]) -> None:
        values = ", ".join(
            f"('there', {_literal(row['v'])}, {_literal(row['id'])}, {_literal(row['n'])})"
            for row in rows
        )
        select = f"SELECT /*+ COALESCE(1) */ * FROM VALUES {values}"
        self.sql(f"INSERT INTO {{t}} (own, v, id, n) {select}")


def _literal(value: Any) -> str:
    return "NULL" if value is None else repr(value)


EITHER = pytest.mark.parametrize("table", [KEYED, BAG], ids=["key", "bag"])


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path / "t")


@pytest.fixture
def filled(place: Place) -> Place:
    """With rows, which have a column of their own."""
    place.create(*TARGETS["row tracking"])
    place.fill(THERE)
    return place


def row(id_: int | None, v: str | None, n: int | None = 0) -> dict[str, Any]:
    return {"id": id_, "v": v, "n": n}


THERE = [row(1, "a"), row(2, "b"), row(3, "c"), row(4, None, None), row(5, "e")]
HAPPENED: Transactions = {
    5: [
        ("update", None, row(1, "A", 1)),
        ("update", None, row(2, None, 2), "v"),
        ("delete", row(3, "c")),
        ("insert", row(6, "f")),
    ],
    6: [
        ("update", row(5, "e"), row(3, "moved")),
        ("insert", row(5, "new", 5)),
        ("insert", row(7, "short")),
        ("delete", row(7, "short")),
    ],
}
COUNTED: Transactions = {
    5: [
        ("update", row(1, "a"), row(9, "a")),
        ("delete", row(2, "b")),
        ("insert", row(1, "a")),
        ("insert", row(None, None, None)),
    ],
    6: [("update", row(4, None, None), row(4, "x", None)), ("delete", row(None, None, None))],
}


@pytest.mark.long
@pytest.mark.parametrize("kind", TARGETS)
@EITHER
def test_changes_of_each_kind(place: Place, kind: str, table: PublishedTable) -> None:
    place.create(*TARGETS[kind])
    there = THERE if table is KEYED else [*THERE, row(1, "a"), row(2, "b"), row(2, "b")]
    place.fill(there)
    if kind == "deletion vectors":
        place.sql("DELETE FROM {t} WHERE id = 5")
        place.fill([row(5, "e")])
    model = Model(table, [{**each, "own": "there"} for each in there])
    happened = HAPPENED if table is KEYED else COUNTED
    model.apply(happened)
    before = place.version()
    assert open_target(place.target, table).spark is not None

    applied = apply_changes(place.target, changes(table, happened), 6)

    assert place.rows() == counted(model.rows)
    assert (applied.version, position_of(place.target)) == (before + 1, 6)
    assert apply_changes(place.target, changes(table, happened), 6).version is None


@pytest.mark.long
def test_parts_are_one_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """More changes than are folded at once, which wait in a table beside the files."""
    monkeypatch.setattr(spark_rows, "AT_ONCE", 50)
    place.create(*TARGETS["row tracking"])
    many = [row(i, f"v{i}") for i in range(200)]
    happened: Transactions = {
        5: [("insert", each) for each in many],
        6: [("update", None, row(i, f"w{i}")) for i in range(0, 200, 2)]
        + [("update", row(i, f"v{i}"), row(-i, "moved")) for i in range(1, 200, 4)]
        + [("delete", row(i, "")) for i in range(3, 200, 4)],
    }
    choices = Choices(in_memory=80, commit_by_commit=True)

    apply_changes(place.target, changes(KEYED, happened), 6, choices)

    assert place.rows("id", "v", "n") == left(KEYED, [], happened)
    assert place.version() == 2
    assert not [*place.path.glob("_replication_staged/*")]


@pytest.mark.long
@EITHER
@pytest.mark.parametrize("at_once", [1, 100])
def test_truncates(place: Place, table: PublishedTable, at_once: int) -> None:
    place.create(*TARGETS["mapped columns"])
    place.fill(THERE)
    happened: Transactions = {
        5: [("truncate",)],
        6: [("insert", row(1, "x")), ("truncate",), ("insert", row(2, "y"))],
    }
    choices = Choices(in_memory=at_once, commit_by_commit=True)

    apply_changes(place.target, changes(table, happened), 6, choices)

    assert place.rows("id", "v", "n") == counted([row(2, "y")])
    assert [each["operation"] for each in DeltaTable(place.path).history(2)] == ["WRITE", "DELETE"]


@pytest.mark.long
@pytest.mark.parametrize("policy", ["error", "apply", "skip"])
def test_conflicts_are_counted(filled: Place, policy: Any) -> None:
    happened: Transactions = {
        5: [("insert", row(1, "new")), ("update", None, row(8, "?")), ("delete", row(9, None))]
    }
    model = Model(KEYED, [{**each, "own": "there"} for each in THERE], policy)
    told = changes(KEYED, happened)
    if policy == "error":
        with pytest.raises(ReplicationConflict, match="conflicts with a row"):
            apply_changes(filled.target, told, 5)
        assert position_of(filled.target) is None
        return
    model.apply(happened)

    applied = apply_changes(filled.target, told, 5, Choices(policy))

    assert filled.rows() == counted(model.rows)
    assert applied.conflicts == {"insert_exists": 1, "update_missing": 1, "delete_missing": 1}


@pytest.mark.long
@EITHER
def test_somebody_commits_first(
    filled: Place, table: PublishedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment when the target was read, and the commit."""
    really, texts = (
        module.write,
        [
            "INSERT INTO {t} (id, v, n) VALUES (60, 'his', 0)",
            "DELETE FROM {t} WHERE id = 60",
            "UPDATE {t} SET own = 'his' WHERE id = 2",
            "OPTIMIZE {t}",
        ],
    )

    def write(*args: Any) -> None:
        if texts:
            filled.sql(texts.pop(0))
        really(*args)

    monkeypatch.setattr(module, "write", write)
    happened = HAPPENED if table is KEYED else COUNTED
    owners = {each["id"]: "his" if each["id"] == 2 else "there" for each in THERE}
    there = [{**each, "own": owners[each["id"]]} for each in THERE]

    apply_changes(filled.target, changes(table, happened), 6)

    assert filled.rows() == left(table, there, happened)


@pytest.mark.long
def test_a_digest_is_of_files_where_a_column_is_called_as_sparks_own(place: Place) -> None:
    place.create("id BIGINT, _metadata STRUCT<file_name: STRING>, __METADATA INT")
    place.sql("INSERT INTO {t} (id) VALUES (2)")
    place.sql("UPDATE {t} SET id = 3")

    first, then, again = (
        place.sql(target_commits.files_of(f"{{t}} VERSION AS OF {version}", ["id", *OWN]))
        for version in (1, 2, 2)
    )

    assert first != then
    assert then == again


@pytest.mark.long
@EITHER
def test_somebody_commits_during_the_statement(
    place: Place, table: PublishedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anywhere in it: once for each of the first attempts, by another session."""
    place.create(*TARGETS["mapped columns"])
    place.fill(THERE)
    theirs, really, turns = open_session(session_id=str(uuid.uuid4())), module.write, Counter()
    update = f"UPDATE delta.`{place.path}` SET own = concat(own, '!') WHERE id = 2"

    def commit() -> None:
        with suppress(PySparkException):  # it loses a race, too
            theirs.sql(update).collect()
            turns["won"] += 1

    def write(*args: Any) -> None:
        turns["tried"] += 1
        thread = threading.Thread(target=commit if turns["tried"] % 3 else lambda: None)
        thread.start()
        try:
            really(*args)
        finally:
            thread.join()

    monkeypatch.setattr(module, "write", write)
    happened: Transactions = {
        at: [("insert", row(100 + at, "x")), ("update", row(1, "a"), row(1, "a"))]
        for at in range(5, 7)
    }
    for at, those in happened.items():
        apply_changes(place.target, changes(table, {at: those}), at)

    model = Model(table, [{**each, "own": "there"} for each in THERE])
    model.apply(happened)
    for each in model.rows:
        each["own"] = each.get("own") and each["own"] + "!" * (turns["won"] * (each["id"] == 2))
    assert place.rows() == counted(model.rows)
    assert turns["won"]


@pytest.mark.long
def test_two_apply_the_same(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    told, really = changes(KEYED, HAPPENED), module.write

    def write(*args: Any) -> None:
        monkeypatch.setattr(module, "write", really)
        apply_changes(filled.target, told, 6)
        really(*args)

    monkeypatch.setattr(module, "write", write)
    version = filled.version()

    assert apply_changes(filled.target, told, 6).version is None
    assert filled.version() == version + 1


@pytest.mark.long
def test_an_answer_that_is_lost_after_the_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create(*TARGETS["row tracking"])
    lose_answers(monkeypatch)
    told = changes(KEYED, {5: [("insert", row(1, "x"))]})
    assert apply_changes(place.target, told, 5).version == 1
    assert apply_changes(place.target, told, 5).version is None
    assert place.rows("id") == counted([{"id": 1}])


def copied(place: Place, rows: list[Any], at: int, policy: Any = "error", **more: Any) -> Any:
    reader = pa.Table.from_pylist(rows, schema=SCHEMA).to_reader()
    return copy_rows(place.target, KEYED, reader, at, Choices(policy), **more)


@pytest.mark.long
def test_copies_into_a_table_that_is_there(place: Place) -> None:
    place.create(*TARGETS["row tracking"])
    place.fill(THERE[:2])
    with pytest.raises(ReplicationConflict, match="already has"):
        copied(place, [row(1, "x"), row(8, "y")], 5)
    assert copied(place, [row(1, "x"), row(8, "y")], 5, "apply").conflicts == {"insert_exists": 1}
    kept = [{**row(1, "x"), "own": "there"}, {**row(2, "b"), "own": "there"}]
    assert place.rows() == counted([*kept, {**row(8, "y"), "own": None}])
    assert copied(place, [row(8, "z")], 5).version is None

    for at in (5, 6):
        copied(place, [row(9, f"{at}")], at, replace=True)
        assert place.rows("id", "v", "n") == counted([row(9, f"{at}")])
    copied(place, [], 6, replace=True)
    assert (place.rows(), position_of(place.target)) == (counted([]), 6)
    with pytest.raises(TargetProblem, match="has position 6 already"):
        copied(place, [], 4, replace=True)


@pytest.mark.long
def test_a_copy_that_somebody_is_ahead_of(place: Place) -> None:
    place.create(*TARGETS["row tracking"])

    def batches() -> Any:
        yield from pa.Table.from_pylist([row(1, "a")], schema=SCHEMA).to_batches()
        place.fill([row(1, "his")])

    rows = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    with pytest.raises(ConflictingCommit):
        copy_rows(place.target, KEYED, rows, 5)
    assert place.rows("v") == counted([{"v": "his"}])


@pytest.mark.long
def test_columns_that_the_table_fills(place: Place) -> None:
    place.create(
        "id BIGINT, v STRING, n INT, twice INT GENERATED ALWAYS AS (n * 2), "
        "number BIGINT GENERATED ALWAYS AS IDENTITY, d STRING NOT NULL DEFAULT 'set'",
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    )
    apply_changes(place.target, changes(KEYED, {5: [("insert", row(1, "a", 4))]}), 5)
    apply_changes(place.target, changes(KEYED, {6: [("update", None, row(1, "b", 5))]}), 6)

    filled = {**row(1, "b", 5), "twice": 10, "d": "set"}
    assert place.rows("id", "v", "n", "twice", "d") == counted([filled])
    with pytest.raises(TargetProblem, match="cannot be written exactly") as error:
        apply_changes(place.target, changes(BAG, {7: [("insert", row(1, "a"))]}), 7)
    assert "numbered anew" in error.value.why


def test_a_constraint_refuses_a_row(place: Place) -> None:
    place.create(*TARGETS["row tracking"])
    place.sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 100)")
    told = changes(KEYED, {5: [("insert", row(1, "a")), ("insert", row(100, "a"))]})

    with pytest.raises(TargetProblem, match="refuses a row"):
        apply_changes(place.target, told, 5)
    assert (place.rows(), position_of(place.target)) == (counted([]), None)


@pytest.mark.long
def test_padded_and_short_texts(place: Place) -> None:
    place.create("id BIGINT, v CHAR(3), n INT, own VARCHAR(2)")
    key = PublishedTable("public.t", SCHEMA, ("v",))
    happened: Transactions = {
        5: [("insert", row(1, "a  ")), ("insert", row(2, "bcd"))],
        6: [("update", None, row(3, "a  ")), ("delete", row(2, "bcd"))],
    }
    apply_changes(place.target, changes(key, happened), 6, Choices(commit_by_commit=True))
    assert place.rows("id", "v", "n") == counted([row(3, "a  ")])

    for value in ("a", "abcd"):
        with pytest.raises(TargetProblem, match=r'column "v" .* does not take the value'):
            apply_changes(place.target, changes(key, {7: [("insert", row(4, value))]}), 7)


@pytest.mark.long
@pytest.mark.parametrize("rows", [THERE, []], ids=["rows", "none"])
def test_columns_are_added_and_filled(place: Place, rows: list[Any]) -> None:
    place.create(COLUMNS, f"TBLPROPERTIES ({MAPPED})")
    if rows:
        place.fill(rows)
    nested = pa.struct([("x y", pa.int32())])
    wide = pa.schema([*SCHEMA, ("a b", pa.decimal128(5, 2)), ("s", nested)])
    table = PublishedTable("public.t", wide, ("id",), fills={"a b": Decimal("1.50")})
    new = {**row(9, "x"), "a b": None, "s": {"x y": 1}}
    choices = Choices(add_columns=True)

    apply_changes(place.target, changes(table, {5: [("insert", new)]}), 5, choices)
    more = PublishedTable("public.t", wide.append(pa.field("t", pa.timestamp("us"))), ("id",))
    apply_changes(place.target, changes(more, {}), 6, choices)

    log = log_of(place.target)
    assert log is not None and log.columns["t"] == "timestamp_ntz"
    before = [{"id": each["id"], "a b": Decimal("1.50"), "s": None} for each in rows]
    after = {name: new[name] for name in ("id", "a b", "s")}
    assert place.rows("id", "`a b`", "s") == counted([*before, after])


@pytest.mark.long
def test_times_without_a_zone_in_a_session_that_has_one(place: Place) -> None:
    """There is no such time in that zone, in the night when it moves its clocks."""
    place.create("id BIGINT, t TIMESTAMP_NTZ", f"TBLPROPERTIES ({MAPPED})")
    elsewhere = open_session(session_id=str(uuid.uuid4()), zone="America/New_York")
    target = replace(place.target, session=lambda: elsewhere)
    schema = pa.schema([("id", pa.int64()), ("t", pa.timestamp("us"))])
    night, later = datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30)
    happened: Transactions = {
        5: [("insert", {"id": 1, "t": night}), ("insert", {"id": 2, "t": later})],
        6: [("update", {"id": 1, "t": night}, {"id": 3, "t": night}), ("delete", {"t": later})],
    }
    told = changes(PublishedTable("public.t", schema, ("t",)), happened)
    apply_changes(target, told, 6, Choices(commit_by_commit=True))
    assert place.rows() == counted([{"id": 3, "t": night}])


@pytest.mark.long
def test_many_small_files_are_merged(place: Place) -> None:
    place.create(*TARGETS["row tracking"])
    for i in range(32):
        apply_changes(place.target, changes(KEYED, {i: [("insert", row(i, "x"))]}), i)
    log = log_of(place.target)
    assert log is not None and len(log.file_sizes) < 5
    assert place.rows("id") == counted([{"id": i} for i in range(32)])


def test_a_row_is_found_whatever_the_log_says_of_its_file(place: Place) -> None:
    """The least text of the file is the byte 93, and U+FFFD in the log, which is more than "é"."""
    schema = pa.schema([("s", pa.string()), ("n", pa.int32())])
    table = PublishedTable("public.t", schema, ("s",))
    place.create("s STRING, n INT")
    place.sql("INSERT INTO {t} SELECT CAST(X'93' AS STRING), 1 UNION ALL SELECT 'é', 2")
    place.sql("OPTIMIZE {t}")
    told = changes(table, {5: [("update", None, {"s": "é", "n": 3})]})

    apply_changes(place.target, told, 5)

    rows = place.sql("SELECT hex(s), n FROM {t} ORDER BY ALL")
    assert [tuple(each) for each in rows] == [("93", 1), ("C3A9", 3)]


def test_a_text_that_delta_rs_cannot_read_is_named_and_nothing_is_written(place: Place) -> None:
    """Its bytes are after those that the log has of it."""
    place.create("id BIGINT, own STRING")
    place.sql("INSERT INTO {t} SELECT 1, concat(repeat('a', 50), CAST(X'93' AS STRING))")
    table = PublishedTable("public.t", pa.schema([("id", pa.int64())]), ("id",))
    before = place.version()

    with pytest.raises(SourceProblem, match="a text is not UTF-8"):
        apply_changes(place.target, changes(table, {5: [("delete", {"id": 1})]}), 5)

    assert place.version() == before
