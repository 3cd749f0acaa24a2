"""A lake that publishes, which no Spark reads."""

from __future__ import annotations

from pathlib import Path

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
