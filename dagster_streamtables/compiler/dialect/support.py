"""Which dialects are tested on their databases, and which are experimental."""

from __future__ import annotations

import difflib
import functools
import warnings

import sqlglot

from dagster_streamtables.compiler.dialect.duckdb import DUCKDB
from dagster_streamtables.compiler.dialect.others import EXAMINED, build_experimental_dialect
from dagster_streamtables.compiler.dialect.postgres.dialect import POSTGRES
from dagster_streamtables.compiler.dialect.rules.dialect import Dialect
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition

SPARK = "spark"
"""The dialect that needs no translation."""
TESTED = {"postgres": POSTGRES, "duckdb": DUCKDB}
"""The dialects for which tests compare Spark's results with those of the database itself."""


class ExperimentalDialect(UserWarning):
    """The translation of a query's dialect follows the documentation of its database; the results
    were never compared with the database."""


def check_dialect(name: str) -> str:
    """Check that a dialect can be translated, and warn once per process if it is experimental.

    Raises:
        InvalidDefinition: There is no such dialect, or nobody examined how it differs from Spark.
    """
    known = sorted({SPARK, *TESTED, *EXAMINED})
    if name in EXAMINED:
        _warn(name)
    if name in known:
        return name
    names = f"the dialects are {', '.join(known)}"
    if name in sqlglot.Dialect.classes and name not in ("", DIALECT):
        raise InvalidDefinition(
            f'queries in the SQL dialect "{name}" cannot be translated',
            why=f"its differences from Spark SQL were not examined; {names}",
            fix="write the query in Spark SQL, or in another dialect",
        )
    near = difflib.get_close_matches(name.lower(), known, n=3)
    raise InvalidDefinition(
        f'there is no SQL dialect "{name}"',
        why=names,
        fix=f"did you mean {' or '.join(near)}?" if near else f'write "{SPARK}"',
    )


def rules_of(name: str) -> Dialect:
    """The rules of a dialect: what is kept, rewritten and refused."""
    return TESTED[name] if name in TESTED else build_experimental_dialect(name)


@functools.cache
def _warn(name: str) -> None:
    warnings.warn(
        f"the dialect {name} is experimental: its translation follows its documentation and was "
        f"not compared with the database. Compare the table with {name} before you rely on it, or "
        f"write the query in spark, {' or '.join(TESTED)}",
        ExperimentalDialect,
        stacklevel=2,
    )
