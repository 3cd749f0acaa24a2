"""A few histories on PostgreSQL's own replication and on ours; `python -m` runs many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qa.replication_oracle.clusters import Cluster
from qa.replication_oracle.history import History
from replication.postgres.database import LogicalServer, running


@pytest.fixture(scope="module")
def subscriber() -> Iterator[Cluster]:
    with running(Cluster) as cluster:
        yield cluster


# Seed 2 stops at a row that is there.
@pytest.mark.parametrize(
    "seed", [2, 7, 9, *(pytest.param(n, marks=pytest.mark.long) for n in range(1000, 1040))]
)
def test_histories(seed: int, server: LogicalServer, subscriber: Cluster, tmp_path: Path) -> None:
    History(seed, server, subscriber, tmp_path).run()
