"""Compare random queries full of names with Spark: what it refuses, its columns, and its rows.

python -m qa.scopes --minutes 60 --seed 7
python -m qa.scopes --minutes 60 --seed 7 --pipes
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagster_streamtables.compiler import QueryPlan, compile_query
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, UnsupportedQuery
from dagster_streamtables.runtime.spark.session import open_session
from qa.scopes.grammar import Grammar
from qa.scopes.pipes import Pipes
from qa.scopes.tables import COLUMNS, create

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_NAMES_ALONE = ("two output columns", "output column ")
"""What is refused for the names of a table's columns, which Spark's result need not have."""


@app.command()
def main(minutes: float = 10, seed: int = 1, pipes: bool = False) -> None:
    """The end is 1 if rows or columns are wrong, or the compiler fails.

    What only the compiler refuses as invalid, and what only Spark refuses, is counted, and the
    first of each kind is printed.
    """
    grammar = (Pipes if pipes else Grammar)(Random(seed))
    spark, tally, kinds = open_session(), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        create(spark, Path(folder))
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            query = grammar.query()
            verdict, why = _judged(query, spark)
            tally[verdict] += 1
            kind = re.sub(r'"[^"]*"|`[^`]*`', "…", f"{verdict} {why}")[:60]
            kinds[kind] += 1
            if verdict in ("wrong", "broken") or (why and kinds[kind] == 1):
                print(f"{verdict}: {why}\n    {query}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in tally.most_common()))
    if tally["wrong"] or tally["broken"]:
        raise typer.Exit(1)


def _judged(query: str, spark: SparkSession) -> tuple[str, str]:
    """A verdict, and what to say about it."""
    try:
        rows = spark.sql(query)
    except PySparkException as error:
        return _of_refused(query, str(error).strip().splitlines()[0][:150])
    try:
        plan = compile_query(query, COLUMNS)
    except UnsupportedQuery:
        return "not supported", ""
    except InvalidDefinition as error:
        named = error.what.startswith(_NAMES_ALONE)
        return ("refused for names", "") if named else ("called invalid", error.what)
    except Exception as error:
        return "broken", repr(error)
    if [each.lower() for each in rows.columns] != [each.lower() for each in plan.schema]:
        return "wrong", f"columns {rows.columns}, not {list(plan.schema)}"
    try:
        expected = Counter(map(repr, rows.collect()))
    except PySparkException:
        return "fails in Spark", ""
    return _of_rows(plan, expected, spark)


def _of_refused(query: str, why: str) -> tuple[str, str]:
    try:
        compile_query(query, COLUMNS)
    except StreamTablesError:
        return "refused by both", ""
    except Exception as error:
        return "broken", repr(error)
    return "refused by Spark alone", why


def _of_rows(plan: QueryPlan, expected: Counter[str], spark: SparkSession) -> tuple[str, str]:
    """Whether the plan has the rows of the query, and the text of a full refresh, too."""
    listed = ", ".join(f"`{name}`" for name in plan.schema)
    written = re.sub(r"`(\w+)@after`", r"`\1`", render(plan.view))
    for what, sql in (("plan", written), ("full refresh", plan.full_text.sql)):
        try:
            found = spark.sql(f"SELECT {listed} FROM (\n{sql}\n)").collect()
        except PySparkException as error:
            if "INTERNAL_ERROR" in str(error):  # a bug of Spark's optimizer
                return "fails in Spark", ""
            return "wrong", f"the {what} fails: {str(error).strip().splitlines()[0][:200]}"
        if Counter(map(repr, found)) != expected:
            return "wrong", f"other rows by the {what}"
    return "equal", ""


if __name__ == "__main__":
    app()
