"""Queries of other SQL dialects → Spark SQL, exactly or not at all.

sqlglot parses some thirty dialects and prints Spark's. What it prints may run and yet mean
something else: Postgres' ``7 / 2`` is 3, its ``regexp_replace`` replaces once, its arrays begin
at 1. So nothing is translated by default. `rules/` has what means the same in all dialects;
`postgres/` and `duckdb` add what was run on those databases and on Spark, and rewrite or refuse
what came out differently; `experimental_dialects` has the part of SQL in which the other dialects
agree with Spark, by their documentation.
"""

from dagster_streamtables.compiler.dialect.query_translation import (
    check_dialect,
    place_of_table,
    tables_of,
    translate,
    translation,
)
from dagster_streamtables.compiler.dialect.rules.rule import UnknownType

__all__ = [
    "UnknownType",
    "check_dialect",
    "place_of_table",
    "tables_of",
    "translate",
    "translation",
]
