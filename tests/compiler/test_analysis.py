"""Spark's analyzer takes the change of every case: names, types and grammar, without rows.

What a version of Spark does not know of the query itself is its own matter. `python -m qa.versions`
runs this on other versions.
"""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES, plan_of
from dagster_streamtables.compiler.maintain.strategy import STORED
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.plan.plan import Plan
from dagster_streamtables.compiler.rewrite.fixpoint import name_closures

pytestmark = [pytest.mark.spark, pytest.mark.long]

cases = [
    case for case in casefile.load() if not case.error and "RECURSIVE" not in case.query.upper()
]
"""Without recursions, which a refresh computes step by step: tests/runtime/test_recursion.py."""


@pytest.fixture(scope="module")
def analyzer(spark: SparkSession) -> SparkSession:
    """With the tables of the cases, empty, at each moment."""
    for name, columns in TABLES.items():
        _create_view(spark, name, columns)
        _create_views(spark, name, columns)
    return spark


@pytest.mark.parametrize("case", cases, ids=str)
def test_the_change_is_analyzed(case: Case, analyzer: SparkSession) -> None:
    whole = plan_of(case.query)
    plan = whole.with_intermediates
    try:
        types = _types(analyzer, whole.full_text.sql)
    except AnalysisException as error:
        pytest.skip(f"this Spark does not take the query: {error.getCondition()}")
    assert len(types) == len(whole.stored_columns)
    for each in plan.intermediates:
        _analyze(analyzer, each, _types(analyzer, render(each.view)))
    _analyze(analyzer, plan, dict(zip(plan.stored_columns, types.values(), strict=True)))


def _analyze(spark: SparkSession, plan: Plan, types: dict[str, str]) -> None:
    types = {name: types.get(name, "bigint") for name in plan.stored_columns}
    for name in filter(None, (plan.name, STORED)):
        _create_views(spark, name, types)
    _types(spark, render(name_closures(plan.change(stored=types))))


def _types(spark: SparkSession, text: str) -> dict[str, str]:
    return {each.name: each.dataType.simpleString() for each in spark.sql(text).schema}


def _create_views(spark: SparkSession, name: str, columns: dict[str, str]) -> None:
    for moment in ("before", "after", "change"):
        weight = {"__weight": "bigint"} if moment == "change" else {}
        _create_view(spark, f"{name}@{moment}", columns | weight)


def _create_view(spark: SparkSession, name: str, columns: dict[str, str]) -> None:
    items = ", ".join(f"CAST(NULL AS {type_}) AS `{each}`" for each, type_ in columns.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` AS SELECT {items} WHERE false")
