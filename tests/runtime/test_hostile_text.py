"""Whatever a column, a value or a folder is called, it is a name or a value and nothing else.

Each text is the name of a source's column, a value of it, a stored key, a literal of a query, and a
folder of the lake. Plain Spark says what the tables must hold (`refreshed`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from sqlglot import exp

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.compute.row_files import AT_ONCE, RowFiles
from dagster_streamtables.runtime.delta.key_lookup import bounds, condition
from dagster_streamtables.runtime.delta.table_schema import spark_name, spark_type
from dagster_streamtables.runtime.spark.settings import settings_for_now
from hostile import TEXTS
from runtime.delta import run_on_delta, stored, write
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed

NAMES = [text for text in TEXTS.values() if text]
_COLUMNS = "quotes", "backslash", "comment", "braces", "percent", "path", "lines", "controls"
"""Those that are columns of the source: each costs every statement."""
_UNSTORED = set(" ,;{}()\n\t=`")
"""What Delta refuses in the name of a column, unless it maps names; and the backtick, which its
MERGE forgets to quote where the table has a feed: the refresh runs FULL then, and says so."""


def rows(*numbers: int) -> pa.Table:
    """A row of each text and number, with one column of each name."""
    counts = pa.array([number for number in numbers for _ in TEXTS], pa.int64())
    named = {TEXTS[column]: counts for column in (*_COLUMNS, "backticks")}
    return pa.table({"k": [*TEXTS.values()] * len(numbers), "n": counts, **named})


def literal(text: str) -> str:
    """As a careful author writes it in Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def tables() -> list[StreamTable]:
    names = [TEXTS[column] for column in (*_COLUMNS, "backticks")]
    same = ", ".join(spark_name(name) for name in names if not set(name) & _UNSTORED)
    sums = ", ".join(f"SUM({spark_name(name)}) AS s{i}" for i, name in enumerate(names))
    equal = ", ".join(f"k = {literal(text)} AS c{i}" for i, text in enumerate(TEXTS.values()))
    bag = f"SELECT k, {same}, {equal} FROM src"
    fold = f"SELECT k, {sums} FROM src GROUP BY k"
    return [maintained("t.bag", bag), maintained("t.fold", fold)]


def test_names_and_values(lake: Lake) -> None:
    write(lake, "src", rows(1, 2))
    each_refreshed(lake, *tables())
    DeltaTable(lake.location("src")).delete("n = 1")
    write(lake, "src", rows(3))
    each_followed(lake, *tables())
    assert stored(lake, "t.fold", ["k"]) == {(text,): 1 for text in TEXTS.values()}


@pytest.mark.long
def test_names_and_values_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    names = ["it's", ".path", "a\\", "--"]
    lake = Lake(tmp_path, spark=spark, driver_rows=0)
    write(lake, "src", pa.table({"k": [*TEXTS.values()], **dict.fromkeys(names, [1] * len(TEXTS))}))
    sums = ", ".join(f"SUM({spark_name(name)}) AS {spark_name(name)}" for name in names)
    table = maintained("t", f"SELECT k, {sums} FROM src GROUP BY k")
    refreshed(lake, table)
    DeltaTable(lake.location("src")).delete("k = '*/'")
    write(lake, "src", pa.table({"k": ["`", "new"], **dict.fromkeys(names, [2] * 2)}))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.long
def test_the_parts_of_a_struct(lake: Lake) -> None:
    names = ["tick`s", "it's", ".path"]
    write(lake, "src", pa.table({"s": [dict.fromkeys(names, 1)]}))
    parts = ", ".join(f"s.{spark_name(name)} AS p{i}" for i, name in enumerate(names))
    table = maintained("t", f"SELECT s, {parts} FROM src")
    refreshed(lake, table)
    run_on_delta(lake, "INSERT INTO src SELECT s FROM src")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.long
def test_a_text_that_spark_would_put_a_setting_into(spark: SparkSession, lake: Lake) -> None:
    # In a session of the user, Spark substitutes in all of a statement, in quotes as well.
    write(lake, "src", pa.table({"k": ["${spark.app.name}"], "n": [1]}))
    write(lake, "names", pa.table({"k": ["${spark.app.name}", "b"], "v": ["x", "y"]}))
    table = StreamTable("t", "SELECT n, v FROM src JOIN names USING (k)")
    with settings_for_now(spark, {"spark.sql.variable.substitute": "true"}):
        refreshed(lake, table)
        write(lake, "src", pa.table({"k": ["${spark.app.name}"], "n": [2]}))
        refreshed(lake, table)
    assert stored(lake, "t", ["n", "v"]) == {("1", "x"): 1, ("2", "x"): 1}


def test_a_text_of_a_query_is_no_question_about_settings(spark: SparkSession) -> None:
    assert spark.sql("SELECT '${env:HOME}' AS x").collect()[0].x == "${env:HOME}"


@pytest.mark.long
def test_folders(spark: SparkSession, tmp_path: Path) -> None:
    # delta-rs takes no folder with one of \\ [ ] ^ | in its name.
    text = 'it\'s a `lake`; "x", 100% {y} ${z} $(id) *? <b> #&~!@+=:é --'
    lake = Lake(tmp_path / text, spark=spark, driver_rows=0)
    write(lake, "src", pa.table({"k": [1, 2]}))
    table = StreamTable("t", "SELECT k, COUNT(*) AS c FROM src GROUP BY k")
    refreshed(lake, table)
    write(lake, "src", pa.table({"k": [2, 3]}))
    refreshed(lake, table)
    assert stored(lake, "t", ["k", "c"]) == {("1", "1"): 1, ("2", "2"): 1, ("3", "1"): 1}
    assert [each.name for each in tmp_path.iterdir()] == [text]


def test_rows_are_handed_over_by_a_file_whatever_the_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark takes the path for a pattern, and would read the rows of another refresh along.
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path / "home[ab]"))
    assert RowFiles().write(spark, pa.table({"k": [*range(AT_ONCE + 1)]})) is None
    assert not any(each.is_file() for each in tmp_path.rglob("*"))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_in_a_condition_of_delta_rs_is_that_text(tmp_path: Path, text: str) -> None:
    others = [each for each in TEXTS.values() if each != text]
    table = DeltaTable.create(tmp_path, pa.schema([(text or "k", pa.string())]))
    write_deltalake(table, pa.table({text or "k": [text, *others]}), mode="append")
    where = condition(exp.column(text or "k", quoted=True), pa.chunked_array([[text]]))
    assert where is None or table.delete(where)["num_deleted_rows"] == 1


def test_a_text_that_spark_substitutes_in_is_no_bound() -> None:
    assert bounds(pa.chunked_array([["a", "${x}"]])) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_type_says_its_names_in_quotes(name: str) -> None:
    fields = [{"name": name, "type": "integer"}]
    type_ = sqlglot.parse_one(
        f"CAST(NULL AS {spark_type({'type': 'struct', 'fields': fields})})", dialect="spark"
    )
    assert [each.name for each in type_.to.expressions] == [name]
