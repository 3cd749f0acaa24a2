"""A lake in a folder of its own, and the history that the rules of subscriptions are told with."""

from __future__ import annotations

from collections.abc import Iterator
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
    for _ in example_history(t):
        pass
    return t


def example_history(t: Table) -> Iterator[None]:
    """Six commits, one at a time."""
    yield t.insert((1, "a"), (2, "b"))
    yield t.update("k = 1", v="'A'")
    yield t.delete("k = 2")
    yield t.insert((3, "c"), (3, "c"))
    yield t.compact()
    yield t.delete("k = 3")
