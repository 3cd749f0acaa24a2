"""A lake that publishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changes.table import Table
from dagster_streamtables import Lake


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Spark reads it in tests that have a session."""
    has_spark = "spark" in request.fixturenames
    return Lake(tmp_path / "lake", spark=request.getfixturevalue("spark") if has_spark else None)


@pytest.fixture
def t(lake: Lake) -> Table:
    table = Table.new(lake.location("t"))
    table.insert((1, "a"), (2, "b"))
    return table


Sql = Callable[..., Any]
"""Runs a statement of Spark, in which `{t}` is the table `t`, or another that is named."""


@pytest.fixture
def sql(lake: Lake, spark: Any) -> Sql:
    def run(text: str, table: str = "t") -> Any:
        return spark.sql(text.replace("{t}", f"delta.`{lake.location(table)}`"))

    return run
