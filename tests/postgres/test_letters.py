"""Letters in patterns are those of Unicode, as in a database of UTF-8 (`C.UTF-8` of PostgreSQL)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from dagster_streamtables.compiler.dialect.query_translation import translation
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from postgres.compared import shown

_TEXTS = (
    *("", "abc", "Ab_1", "ÀÉ Öl_x-1", "straße", "ΣΊΣΥΦΟΣ", "日本語"),
    *("a😀b", "x٣y", "Ǆǅǆ", "e\u0301", "foo, bar\tbaz", "naïve café", "_", "ª º"),
    *("Zeile1\nZeile2", "İı", "𝐀𝐁"),
)
_EXPRESSIONS = (
    r"u ~ '\w'", r"u ~ '^\w+$'", r"u ~ '\W'", r"u ~ '\ybar\y'", r"u ~ '\mn'", r"u ~ 'e\M'",
    r"u ~ '\Y'",
    "u ~ '[[:alpha:]]{3}'", "u ~ '^[[:alnum:]_ ,-]+$'", "u ~ '[[:upper:]][[:lower:]]'",
    "u ~ '^[^[:upper:]]+$'", "u ~ '[[:digit:]]'", r"u ~ '\Aa|\d\Z'", r"u ~ '[\w-]{5}'",
    "u ~ 'b(?=a)'", r"u ~ 'a(?!\w)'",
    r"regexp_replace(u, '\W+', '-', 'g')", r"regexp_replace(u, '[[:alpha:]]+', '<\&>', 'g')",
    r"regexp_match(u, '(\w+)')", r"regexp_split_to_array(u, '\W+')", r"regexp_count(u, '\w+')",
    r"substring(u from '[[:upper:]]\w*')",
)  # fmt: skip


@pytest.fixture
def database(postgres: Any) -> Iterator[psycopg.Connection[Any]]:
    postgres.execute(
        "CREATE DATABASE letters TEMPLATE template0 ENCODING 'UTF8' "
        "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
    )
    with psycopg.connect(postgres.info.dsn, dbname="letters", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int, u text)")
        for id_, text in enumerate(_TEXTS):
            connection.execute("INSERT INTO t VALUES (%s, %s)", (id_, text))
        yield connection
    postgres.execute("DROP DATABASE letters")


def _id(row: dict[str, Any]) -> int:
    return row["id"]


def test_letters_are_those_of_a_database_of_utf8(spark: Any, database: Any) -> None:
    rows = pa.table({"id": pa.array(range(len(_TEXTS)), pa.int32()), "u": list(_TEXTS)})
    outputs = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(_EXPRESSIONS))
    text = f"SELECT id, {outputs} FROM t"
    sql, notes = translation(text, "postgres", {"t": {"id": "int", "u": "string"}})
    found = arrow_rows(query(spark, sql, {"t": spark.createDataFrame(rows)})).to_pylist()
    cursor = database.execute(text)
    names = [column.name for column in cursor.description]
    expected = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert all(row.keys() == set(names) for row in found)
    wrong = [
        (_EXPRESSIONS[place], _TEXTS[theirs["id"]], theirs[f"c{place}"], ours[f"c{place}"])
        for theirs, ours in zip(*(sorted(each, key=_id) for each in (expected, found)), strict=True)
        for place in range(len(_EXPRESSIONS))
        if shown(theirs[f"c{place}"]) != shown(ours[f"c{place}"])
    ]
    assert wrong == []
    assert any("letters in patterns" in each for each in notes)
