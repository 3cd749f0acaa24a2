"""The names of output columns whose author gives none."""

from __future__ import annotations

import pytest

from compiler.database import TABLES
from dagster_streamtables.compiler import compile_query

NAMES = {
    "SELECT CAST(Amount AS BIGINT), (customer) FROM orders": ["Amount", "customer"],
    "SELECT o.amount::STRING, TRY_CAST(o.id AS STRING) FROM orders AS o": ["amount", "id"],
    "SELECT 1, -1, 1.50, TRUE, 'new' FROM orders": ["1", "-1", "1.50", "true", "new"],
    "SELECT tags[0], v.tags[id] FROM visits AS v": ["tags[0]", "tags[id]"],
    "SELECT place.x, id FROM visits": ["x", "id"],
    "SELECT explode(tags) FROM visits": ["col"],
    "SELECT id, posexplode(tags) FROM visits": ["id", "pos", "col"],
    "SELECT * FROM (SELECT CAST(amount AS BIGINT), 2 FROM orders) AS t": ["amount", "2"],
}
"""Query → the names that Spark gives, which `runtime/test_output_names.py` asks it for."""


@pytest.mark.parametrize("query", NAMES)
def test_columns_without_a_name_have_the_one_of_spark(query: str) -> None:
    assert list(compile_query(query, TABLES).schema) == NAMES[query]
