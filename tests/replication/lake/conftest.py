"""A lake that publishes, which no Spark reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changes.table import Table
from dagster_streamtables import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def t(lake: Lake) -> Table:
    table = Table.new(lake.location("t"))
    table.insert((1, "a"), (2, "b"))
    return table


Sql = Callable[[str], Any]
"""Runs a statement of Spark, in which `{t}` is the table `t`."""


@pytest.fixture
def sql(lake: Lake, spark: Any) -> Sql:
    return lambda text: spark.sql(text.replace("{t}", f"delta.`{lake.location('t')}`"))
