"""A lake in a folder of its own, and the history that the rules of subscriptions are told with."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.table import Table
from dagster_streamtables import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def t(lake: Lake) -> Table:
    """An empty table ``t``, which is at version 0."""
    return Table.new(lake.location("t"))


@pytest.fixture
def example(t: Table) -> Table:
    """The table ``t`` with the example history, up to version 6."""
    return with_example(t)


def with_example(t: Table) -> Table:
    t.insert((1, "a"), (2, "b"))
    t.update("k = 1", v="'A'")
    t.delete("k = 2")
    t.insert((3, "c"), (3, "c"))
    t.compact()
    t.delete("k = 3")
    return t
