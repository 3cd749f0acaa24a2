"""Damage queries for some minutes, and print those that only Spark refuses.

    python -m qa.damage --minutes 10 --seed 1

The same seed gives the same texts, as many as there is time for.
"""

from __future__ import annotations

import json
import random
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from compiler.casefile import load
from compiler.database import TABLES
from dagster_streamtables.compiler import compile_query, tokenize_query
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.spark.session import open_session
from qa.damage.damages import damage

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    minutes: float = 10,
    seed: int = 1,
    report: Annotated[Path | None, typer.Option(help="A line of JSON for each finding.")] = None,
) -> None:
    """Damage queries at random; the end is 1 if one is taken that Spark refuses."""
    spark, chance = open_session(), random.Random(seed)
    for name, columns in TABLES.items():
        listed = ", ".join(
            f"CAST(NULL AS {kind}) AS `{column}`" for column, kind in columns.items()
        )
        spark.sql(f"SELECT {listed} WHERE false").createOrReplaceTempView(name)
    queries = [case.query for case in load() if not case.error]
    tally, kinds = Counter[str](), Counter[str]()
    until, seen = time.monotonic() + 60 * minutes, set[str]()
    while time.monotonic() < until:
        text = damage(chance.choice(queries), chance)
        if text in seen:
            continue
        seen.add(text)
        tally["texts"] += 1
        try:
            if not TABLES.keys() >= {*tokenize_query(text).sources}:
                continue
            compile_query(text, TABLES)
        except StreamTablesError:
            continue
        except Exception as error:
            refusal = f"crash: {type(error).__name__}", traceback.format_exc()[-500:]
        else:
            tally["taken"] += 1
            refusal = _refusal(spark, text)
        if refusal is None:
            continue
        kind, said = refusal
        kinds[kind] += 1
        if report is not None:
            with report.open("a") as lines:
                lines.write(json.dumps({"kind": kind, "text": text, "said": said}) + "\n")
        if kinds[kind] <= 3:
            print(f"{kind}\n  {text}\n  {said[:300]}", flush=True)
    print(dict(tally), dict(kinds.most_common()))
    raise typer.Exit(int(bool(kinds)))


def _refusal(spark: SparkSession, text: str) -> tuple[str, str] | None:
    try:
        spark.sql(text).schema  # noqa: B018
    except PySparkException as error:
        return error.getCondition() or type(error).__name__, str(error)
    return None


if __name__ == "__main__":
    app()
