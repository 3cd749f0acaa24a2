"""Errors that Spark raises over rows or a query: where in the author's text, and what to do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, Mode, StreamTable, View
from dagster_streamtables.errors import FailedQuery, RejectedQuery
from runtime.delta import write

pytestmark = pytest.mark.long

INT = pa.int32()
ROWS = pa.table(
    {
        "id": pa.array([1, 2], INT),
        "k": pa.array([1, 1], INT),
        "big": pa.array([2147483647, 5], INT),
        "s": ["a", "2"],
        "l": pa.array([[1], [2, 3]], pa.list_(INT)),
    }
)
# The expression that Spark fails on, its condition, and a word of the fix. Those from SUM on have
# no position in Spark's error.
EXPRESSIONS = [
    ("CAST(s AS INT)", "CAST_INVALID_INPUT", "try_cast"),
    ("CAST(big AS DECIMAL(3, 0))", "NUMERIC_VALUE_OUT_OF_RANGE", "try_cast"),
    ("1 / (id - 1)", "DIVIDE_BY_ZERO", "try_divide"),
    ("1 % (id - 1)", "REMAINDER_BY_ZERO", "try_mod"),
    ("big + 1", "ARITHMETIC_OVERFLOW", "wider type"),
    ("l[1]", "INVALID_ARRAY_INDEX", "get(array, n)"),
    ("element_at(l, 2)", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "try_element_at"),
    ("element_at(l, 0)", "INVALID_INDEX_OF_ZERO", "count from 1"),
    ("CAST(big AS SMALLINT)", "CAST_OVERFLOW", "try_cast"),
    ("to_timestamp(s, 'yyyy')", "CANNOT_PARSE_TIMESTAMP", "try_to_timestamp"),
    ("make_date(2020, 13, id)", "DATETIME_FIELD_OUT_OF_BOUNDS", "in a CASE"),
    ("map(k, 1, 1, 2)", "DUPLICATED_MAP_KEY", "max_by"),
    ("map(nullif(k, 1), 1)", "NULL_MAP_KEY", "IS NOT NULL"),
    ("from_json(s, 'a INT', map('mode', 'FAILFAST'))", "MALFORMED_RECORD", "PERMISSIVE"),
    ("to_number(s, '999')", "INVALID_FORMAT.MISMATCH_INPUT", "try_to_number"),
    ("parse_url(s || ' :', 'HOST')", "INVALID_URL", "try_parse_url"),
    ("validate_utf8(CAST(unhex('ff') AS STRING))", "INVALID_UTF8_STRING", "make_valid_utf8"),
    ("regexp_extract(s, '(a)', 2)", "INVALID_PARAMETER_VALUE", "CASE"),
    ("s RLIKE '(' || s", "Unclosed group", "CASE"),
]
UNKNOWN = ("s RLIKE '(' || s",)
"""Expressions whose place Spark does not tell at all."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("lake"), spark=spark)
    write(lake, "t", ROWS)
    return lake


def failure(lake: Lake, query: str, *, mode: Mode = Mode.FULL, **more: object) -> FailedQuery:
    with pytest.raises((FailedQuery, RejectedQuery)) as raised:
        lake.refresh(StreamTable("mart.x", query, mode=mode, **more))  # pyright: ignore
    return raised.value  # pyright: ignore


@pytest.mark.parametrize(("expression", "condition", "fix"), EXPRESSIONS)
def test_an_expression_is_underlined_and_has_a_fix(
    expression: str, condition: str, fix: str, lake: Lake
) -> None:
    error = failure(lake, f"SELECT id,\n  {expression} AS x\nFROM t")

    assert type(error) is FailedQuery
    assert condition in error.why
    assert "spark.sql" not in error.why
    assert fix in error.fix
    carets = "^" * len(expression)
    place = f"line 2, column 3\n  {expression} AS x\n  {carets}"
    assert error.where == ("" if expression in UNKNOWN else place)


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.DIFFERENTIAL])
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT k,\n SUM(CAST(big AS BIGINT) * 4294967298) AS x FROM t GROUP BY k", (2, 2)),
        ("SELECT k, AVG(CAST(s AS INT)) AS x, COUNT(*) AS n FROM t GROUP BY k", (1, 15)),
        ("SELECT DISTINCT k,\n CAST(s AS INT) AS x FROM t", (2, 2)),
        ("SELECT id,\n (SELECT b.id FROM t AS b) AS x FROM t AS a", (2, 2)),
        ("SELECT id,\n (SELECT b.id FROM t AS b WHERE b.k = a.k) AS x FROM t AS a", (2, 10)),
        # The same words twice: the first ones do not fail, and a comment has them.
        (
            "SELECT id, -- CAST(s AS INT)\n CASE WHEN id = 2 THEN CAST(s AS INT) END AS n,\n"
            " CAST(s AS INT) AS m FROM t",
            (3, 2),
        ),
        # Spark broadcasts the rows of c, and raises the error in another one without a condition.
        ("WITH c AS (SELECT id,\n CAST(s AS INT) AS n FROM t) SELECT * FROM c JOIN t AS u "
         "USING (id)", (2, 2)),
        ("FROM t\n|> EXTEND CAST(s AS INT) AS n\n|> SELECT id, n", (2, 11)),
    ],
)  # fmt: skip
def test_a_place_is_one_in_the_text_as_it_was_written(
    query: str, place: tuple[int, int], mode: Mode, lake: Lake
) -> None:
    error = failure(lake, query, mode=mode)
    assert type(error) is FailedQuery
    assert error.place is not None
    assert (error.place.line, error.place.column) == place


def test_a_scalar_subquery_gets_no_advice_about_casts(lake: Lake) -> None:
    error = failure(lake, "SELECT id, (SELECT b.id FROM t AS b WHERE b.k = a.k) AS x FROM t AS a")
    assert "SCALAR_SUBQUERY_TOO_MANY_ROWS" in error.why
    assert error.fix.startswith("let the subquery return one row")
    assert "cast" not in error.fix


def test_an_error_that_the_query_raises_is_its_own(lake: Lake) -> None:
    error = failure(lake, "SELECT id, CASE WHEN id = 1 THEN raise_error(s) ELSE 1 END AS x FROM t")
    assert "USER_RAISED_EXCEPTION" in error.why
    assert "raise_error or assert_true" in error.fix
    assert error.where.splitlines()[0] == "line 1, column 34"


def test_an_error_in_a_write_by_spark_is_one_of_the_rows(lake: Lake) -> None:
    """A VARIANT stays in Spark, as do more rows than fit in this process."""
    error = failure(lake, "SELECT id, parse_json('{' || s) AS x FROM t")
    assert type(error) is FailedQuery
    assert error.why.startswith("[MALFORMED_RECORD_IN_PARSING")


def test_the_only_cause_is_not_guessed_among_several(lake: Lake) -> None:
    assert failure(lake, "SELECT id, map(k, 1) AS x, map(k, 1, 1, 2) AS y FROM t").where == ""


def test_a_query_in_another_dialect_names_the_output_column(lake: Lake) -> None:
    error = failure(lake, "SELECT id, s::int AS n FROM t", dialect="postgres")
    assert error.where == 'the output column "n"'


def test_an_expression_of_a_view_is_in_the_name_of_the_view(lake: Lake) -> None:
    view = View("v", "SELECT id, CAST(s AS INT) AS n FROM t")
    error = failure(lake, "SELECT n\nFROM v", views=(view,))
    assert error.where == "line 2, column 6\nFROM v\n     ^"


def test_a_place_is_counted_in_the_file(lake: Lake, tmp_path: Path) -> None:
    file = str(tmp_path / "x.sql")
    error = failure(lake, "SELECT id,\n CAST(s AS INT) AS n FROM t", file=file, line=4)
    assert error.where.startswith(f"{file}:5:2\n")


@pytest.mark.parametrize(
    ("query", "condition", "place"),
    [
        ("SELECT id,\n nope AS x FROM t", "UNRESOLVED_COLUMN", (2, 2)),
        ("SELECT id,\n id + l AS x FROM t", "DATATYPE_MISMATCH", (2, 2)),
        ("SELECT id,\n frobnicate(id) AS x FROM t", "UNRESOLVED_ROUTINE", (2, 2)),
        ("SELECT id,\n x y z FROM t", "PARSE_SYNTAX_ERROR", (2, 6)),
    ],
)
def test_a_query_that_spark_rejects_is_underlined(
    query: str, condition: str, place: tuple[int, int], lake: Lake
) -> None:
    error = failure(lake, query)
    assert type(error) is RejectedQuery
    assert condition in error.why
    assert error.place is not None
    assert (error.place.line, error.place.column) == place


def test_a_message_of_several_lines_is_whole(lake: Lake) -> None:
    error = failure(lake, "SELECT id, date_format(current_date(), 'uuuu-ee') AS x FROM t")
    assert "upgrading to Spark >= 3.0: All week-based patterns are unsupported" in error.why
    assert "EXTRACT" in error.why
    assert error.where.startswith("line 1, column 12\n")
