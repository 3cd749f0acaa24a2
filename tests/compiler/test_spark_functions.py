"""No call of a function of Spark is taken for the syntax of another engine."""

from __future__ import annotations

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.text.spark_functions import AGGREGATES, COUNTED, SCALAR, takes
from dagster_streamtables.errors import StreamTablesError

COLUMNS = {"t": {"a": "timestamp", "b": "string", "c": "int"}}
MOST = 5


def refusal(call: str) -> str:
    try:
        compile_query(f"SELECT {call} AS x FROM t", COLUMNS)
    except StreamTablesError as error:
        return error.what
    return ""


def test_functions_of_spark_are_known_as_such() -> None:
    """sqlglot parses a call of FROM_UTC_TIMESTAMP as AT TIME ZONE, which Spark does not have."""
    tried, foreign = 0, dict[str, str]()
    for name in sorted(SCALAR | AGGREGATES):
        for count in range(MOST):
            call = f"{name}({', '.join('abcba'[:count])})"
            said, tried = refusal(call), tried + 1
            if name in COUNTED and not takes(name, count):
                continue
            if said.startswith("Spark has no") or "nor a declared one" in said:
                foreign[call] = said
    assert tried > 1000
    assert not foreign
