"""The origins of each output column: known for every maintained query, and the right ones."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES, plan_of

maintained = [case for case in casefile.load() if not case.error]
LOWER = {table: {name.lower() for name in columns} for table, columns in TABLES.items()}


@pytest.mark.parametrize("case", maintained, ids=str)
def test_every_output_has_its_origins(case: Case) -> None:
    plan = plan_of(case.query)
    lineage = plan.lineage()
    assert list(lineage) == list(plan.schema)
    for origins in lineage.values():
        for source, column in origins:
            assert source in plan.sources
            assert column.lower() in LOWER[source]


ORIGINS, TIMES = casefile.tables("origins.txt").values()


@pytest.mark.parametrize(
    ("query", "origins"), [row[1:] for row in ORIGINS], ids=[row[0] for row in ORIGINS]
)
def test_the_origins_are_the_values_that_a_column_is_computed_from(
    query: str, origins: str
) -> None:
    found = {".".join(origin) for origin in plan_of(query).lineage()["x"]}
    assert (found or {"none"}) == set(origins.split(", "))


@pytest.mark.parametrize(("query", "columns"), TIMES)
def test_a_plan_tells_which_columns_hold_the_time(query: str, columns: str) -> None:
    plan = plan_of(query)
    assert (", ".join(plan.time_columns) or "none") == columns
    said = "All rows change as time passes, by the columns" in plan.explain()
    assert said is bool(plan.time_columns)
