"""The harness of Spark's own SQL tests, on files of its own: no download."""

from __future__ import annotations

import zipfile
from collections import Counter
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from qa.spark_corpus import jar
from qa.spark_corpus.changes import ORDERS, WINDOWS, SourceTable, condition, mixed, updated
from qa.spark_corpus.follow import same_columns
from qa.spark_corpus.outcome import Outcome, Result, reason_of
from qa.spark_corpus.outputs import names_needed, texts_with
from qa.spark_corpus.relations import not_stored, renamed
from qa.spark_corpus.report import FileReport, Tally
from qa.spark_corpus.statements import Statement, read_file, split
from qa.sqlglot_fixtures.fixtures import statements

ROWS = pa.table({"a": pa.array([1, 2, None, 4], pa.int32()), "b": ["x", "it's", "z", None]})


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' AS a, \"b;\" AS b, `c;` FROM t;", None),
        (r"SELECT 'it\';s', r'\' || ';'", None),
        ("SELECT 1 -- one; two\n, 2", None),
        ("SELECT /* ; /* nested; */ ; */ 1", None),
        ("-- nothing;\n;\n/* nothing */;", []),
        ("SELECT /* it's open; ; 1", None),
    ],
)
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(
    text: str, statements: list[str] | None
) -> None:
    assert split(text) == ([text.removesuffix(";")] if statements is None else statements)


def test_a_file_is_read_as_the_suite_reads_it(tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_text("-- its tables\nCREATE TABLE t(a INT);\n")
    (tmp_path / "a.sql").write_text(
        "--IMPORT tables.sql\n--SET spark.x=1, spark.y=2\n"
        "--CONFIG_DIM1 spark.z=3\n--CONFIG_DIM1 spark.z=4\n--ONLY_IF spark\n"
        "SELECT a -- the only one;\nFROM t;\n  -- a comment; of a line\n"
        "--QUERY-DELIMITER-START\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n--QUERY-DELIMITER-END\n"
        "SELECT udf(a), t.udf, udf_2(a) FROM t"
    )

    file = read_file(tmp_path, "a.sql")

    assert [each.text for each in file.statements] == [
        "CREATE TABLE t(a INT)",
        "SELECT a -- the only one;\nFROM t",
        "BEGIN\n  SELECT 1;\n  SELECT 2;\nEND",
        "SELECT coalesce(a), t.udf, udf_2(a) FROM t",
    ]
    assert file.settings == {"spark.x": "1", "spark.y": "2", "spark.z": "3"}
    assert file.dimensions == 1


@pytest.mark.parametrize(
    ("text", "is_query"),
    [
        ("SELECT 1", True),
        ("/* c */ (\n-- d\nWITH a AS (SELECT 1) SELECT * FROM a)", True),
        ("FROM t |> SELECT a", True),
        ("TABLE t", True),
        ("INSERT INTO t SELECT 1", False),
        ("DROP TABLE t", False),
    ],
)
def test_what_is_a_query(text: str, is_query: bool) -> None:
    assert Statement(1, text).is_query is is_query


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("SELECT a FROM t", ["a"], "SELECT a FROM t"),
        (
            "SELECT count(*), k FROM t GROUP BY k",
            ["count(1)", "k"],
            "SELECT count(*) AS `c1`, k FROM t GROUP BY k",
        ),
        (
            "WITH w AS (SELECT 1 + 1 FROM t) SELECT DISTINCT max(a), b[0, 1] FROM w -- end",
            ["max(a)", "b[0]"],
            "WITH w AS (SELECT 1 + 1 FROM t) SELECT DISTINCT max(a) AS `c1`, b[0, 1] FROM w -- end",
        ),
        (
            "SELECT * FROM t, u",
            ["a", "A"],
            "SELECT * FROM (\nSELECT * FROM t, u\n) AS named (`a`, `c2`)",
        ),
        (
            "SELECT a AS `b c` FROM t",
            ["b c"],
            "SELECT * FROM (\nSELECT a AS `b c` FROM t\n) AS named (`c1`)",
        ),
    ],
)
def test_outputs_get_names_only_where_they_need_them(
    text: str, names: list[str], first: str
) -> None:
    assert texts_with(text, names, names_needed(names))[0] == first


def test_names_of_tables_are_replaced_and_nothing_else() -> None:
    text = "WITH u AS (SELECT 'T' FROM T) SELECT T.a FROM u, T JOIN s.T AS x"

    assert renamed(text, {"t": "t", "s.t": "s__t"}) == (
        "WITH u AS (SELECT 'T' FROM t) SELECT T.a FROM u, t JOIN s__t AS x"
    )
    assert renamed("SELECT t.a FROM s.t", {"s.t": "s__t"}, alias=True) == (
        "SELECT t.a FROM s__t AS `t`"
    )


def test_types_without_a_column_in_delta() -> None:
    kinds = ["interval year", "array<interval day>", "time(6)", "struct<a:time(6)>", "geometry"]

    assert all(map(not_stored, kinds))
    assert not any(map(not_stored, ["timestamp", "timestamp_ntz", "struct<t:timestamp>", "int"]))


def test_windows_change_every_table_the_same_way_for_one_seed(tmp_path: Path) -> None:
    for turn in range(len(ORDERS)):
        histories: list[list[Counter[str]]] = []
        for life in "ab":
            table = SourceTable(tmp_path / f"{life}{turn}", ROWS, Random(7), turn)
            table.create(partitioned=turn == 1)
            seen = [_counted(table.rows)]
            for window in range(1, WINDOWS + 1):
                table.move(window)
                seen.append(_counted(table.rows))
            histories.append(seen)

        first, second = histories
        assert first == second
        assert all(one != next_ for one, next_ in pairwise(first))
        empties = [at for at, rows in enumerate(first) if not rows]
        assert empties == [ORDERS[turn].index("empty") + 1]


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def test_changed_rows_keep_their_types_and_have_nulls() -> None:
    wide = pa.concat_tables([ROWS] * 10)

    assert updated(wide, Random(1)).schema == mixed(wide, Random(1)).schema == ROWS.schema
    assert updated(wide, Random(1)).num_rows == wide.num_rows
    assert mixed(wide, Random(1))["a"].null_count
    assert mixed(ROWS.slice(0, 0), Random(1)).num_rows == 0


def test_a_condition_quotes_names_and_values() -> None:
    rows = pa.table({'q"': ["it's"]})

    assert condition(rows, Random(1)) == "\"q\"\"\" = 'it''s'"
    assert condition(pa.table({"f": [1.5]}), Random(1)) is None


def test_names_and_types_are_compared() -> None:
    assert same_columns({"a": "int", "b": "string"}, [("a", "int"), ("b", "string")]) == ""
    assert same_columns({"b": "", "a": ""}, [("a", "int"), ("b", "int")]) == "names: b, a, not a, b"
    assert same_columns({"a": "bigint"}, [("a", "int")]) == "type of a: bigint, not int"


def test_reasons_are_counted_without_names() -> None:
    report = FileReport("a.sql", statements=3)
    for name in ("a", "b"):
        error = InvalidDefinition(f'stream table "st_1": "{name}" is unknown')
        report.results.append(Result("a.sql", 1, "", Outcome.REFUSED, reason_of(error)))
    report.results.append(Result("a.sql", 2, "", Outcome.EXACT, windows=3, changed=True))

    tally = Tally.of(report)

    assert tally.reasons == {(Outcome.REFUSED, 'InvalidDefinition: "…" is unknown'): 2}
    assert (tally.asked, tally.windows, tally.changed, tally.has_defects) == (3, 3, 1, False)
    report.problem = "a defect of the harness"
    assert Tally.of(report).has_defects
    assert "ended early by a defect of the harness: a.sql" in list(Tally.of(report).lines())
    report.problem = ""
    report.results.append(Result("a.sql", 3, "", Outcome.WRONG))
    assert Tally.of(report).has_defects


def test_the_jar_is_asked_for_by_version_and_classifier(tmp_path: Path) -> None:
    arguments = jar._ivy(tmp_path, "4.2.0")

    asked = (tmp_path / "ivy.xml").read_text()
    assert 'name="spark-sql_2.13" rev="4.2.0"' in asked
    assert 'm:classifier="tests"' in asked
    assert arguments[-1] == f"{tmp_path}/[artifact]-[revision](-[classifier]).[ext]"


@pytest.mark.spark
def test_a_mirror_is_asked_and_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, mirror = tmp_path / "ivysettings.xml", tmp_path / "mirror"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers><filesystem name="mirror">'
        f'<artifact pattern="{mirror}/[artifact]-[revision](-[classifier]).[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STREAMTABLES_IVY_SETTINGS", str(settings))
    with pytest.raises(EnvironmentProblem, match="could not be fetched") as raised:
        jar.corpus()
    assert "classifier tests" in raised.value.what

    mirror.mkdir()
    with zipfile.ZipFile(mirror / f"spark-sql_2.13-{version('pyspark')}-tests.jar", "w") as made:
        made.writestr("sql-tests/inputs/a.sql", "SELECT 1")
        made.writestr("org/apache/Suite.class", "")
    folder = jar.corpus()
    assert [each.name for each in folder.rglob("*") if each.is_file()] == ["a.sql"]

    (mirror / f"spark-sql_2.13-{version('pyspark')}-tests.jar").unlink()
    assert jar.corpus() == folder


def test_fixtures_are_read_in_pairs_and_without_other_dialects() -> None:
    text = """
-- A comment; with a semicolon
# title: one
SELECT "a" FROM x;
SELECT x.a AS a FROM x AS x;
# dialect: bigquery
SELECT b FROM x;
SELECT x.b FROM x;
# dialect: hive, spark2, spark
# schema: {"t": {"c": "INT"}}
SELECT "c"
FROM t;
SELECT 1;
"""
    made = "CREATE OR REPLACE TEMPORARY VIEW t AS SELECT CAST(NULL AS INT) AS c;\n"
    found = list(statements(text))
    assert found == ["SELECT `a` FROM x;\n", made, 'SELECT "c"\nFROM t;\n']
