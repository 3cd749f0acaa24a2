"""Names of outputs without an alias, of what a star stands for, and names that are quoted."""

from __future__ import annotations

from typing import Any

from compiler.test_stars import KEYED, OF_JOINS
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.compiler.dialect.postgres.identifiers import KEYWORDS
from dagster_streamtables.errors import InvalidDefinition
from postgres.cases import entries
from postgres.tables import COLUMNS, create

_OUTPUTS = """
var_pop(d) | var_samp(d) | variance(d) | stddev(d) | stddev_pop(d) | stddev_samp(d) | corr(d, d)
covar_pop(d, d) | bit_and(x) | bit_or(x) | every(f) | bool_and(f) | Count(*) | UPPER(s)
sum(x) OVER () | count(*) FILTER (WHERE f) | percentile_cont(0.5) WITHIN GROUP (ORDER BY d)
CASE WHEN f THEN 1 END | CASE WHEN f THEN 1 ELSE x END | CASE WHEN f THEN s ELSE upper(s) END
(CASE WHEN f THEN 1 END)::int | 'x'::text::varchar(3) | x::smallint::int | (x + 1)::bigint
CAST('1' AS double precision) | date '2000-01-01' | true | x = 1 | NOT f | -x
(x) | s COLLATE "C" | ts AT TIME ZONE 'UTC' | ARRAY[1, 2] | arr[1] | arr[1:2] | '{1,2}'::int[]
(SELECT 1) | (SELECT max(x) FROM t) | (SELECT x AS y FROM t LIMIT 1) | EXISTS (SELECT 1)
coalesce(x, 1) | nullif(x, 1) | greatest(x, 1) | extract(year from ts) | date_part('year', ts)
trim(s) | trim(leading from s) | trim(trailing 'a' from s) | rtrim(s) | lpad(s, 3)
substring(s from 1 for 2) | substr(s, 1) | position('a' in s) | strpos(s, 'a') | char_length(s)
mod(x, y) | div(x, y) | power(n, 2) | |/ d | sqrt(d) | ceiling(n) | log10(n) | s ~ 'a' | s ^@ 'a'
"""


def _name(output: str) -> list[str]:
    sql = translate(f"SELECT {output} FROM t", "postgres", COLUMNS)
    return list(compile_query(sql, COLUMNS).schema)


def test_outputs_are_called_as_in_postgres(postgres: Any) -> None:
    create(postgres)
    outputs = [each for line in _OUTPUTS.strip().split("\n") for each in line.split(" | ")]
    found = {each: _name(each) for each in outputs}
    for entry in entries("documented.txt"):
        if not entry.startswith(("SELECT", "WITH", "VALUES")) and entry != "j['a']":
            try:
                found[entry] = _name(entry)
            except InvalidDefinition:
                continue

    theirs = {each: _theirs(postgres, each) for each in found}

    assert found == {each: name or found[each] for each, name in theirs.items()}
    assert all(theirs[each] for each in outputs)


def _theirs(postgres: Any, output: str) -> list[str]:
    """Empty if PostgreSQL takes the output in no query without groups."""
    raw = postgres.pgconn
    raw.prepare(b"", f"SELECT {output} FROM t".encode())
    said = raw.describe_prepared(b"")
    return [said.fname(place).decode() for place in range(said.nfields)]


def test_the_keywords_are_those_of_postgres(postgres: Any) -> None:
    query = "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"
    assert sorted(KEYWORDS.split()) == sorted(word for (word,) in postgres.execute(query))


def test_postgres_has_the_same_columns(postgres: Any) -> None:
    """A star over a join by names has the columns, and their order, that PostgreSQL gives it."""
    for name, columns in KEYED.items():
        postgres.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
    for [query] in OF_JOINS:
        ours = compile_query(translate(query, "postgres", KEYED), KEYED).schema
        assert list(ours) == [each.name for each in postgres.execute(query).description], query
