"""A query that uses the current time has another timestamp each second. Here each millisecond is
due, so that one is computed for longer than it takes until the next one is due: "what is there now"
must end all the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from changes.reading import ready
from changes.table import Table
from dagster_streamtables import Lake, Subscription, subscribe
from dagster_streamtables.changes.clock import clock as clocks
from dagster_streamtables.cli import app
from dagster_streamtables.runtime.spark.session import drop_views

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("until", pa.timestamp("us", tz="UTC"))])
QUERY = "SELECT k FROM t WHERE until > CURRENT_TIMESTAMP()"


@pytest.fixture
def leaving(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Row 0 stays; thirty leave, one in each tenth of a second."""
    monkeypatch.setattr(clocks, "_TIMED_EVERY", 1)
    now = datetime.now(UTC)
    rows = [(k, now + timedelta(seconds=1 + k / 10)) for k in range(1, 31)]
    table = Table.new(lake.location("t"), SCHEMA)
    table.insert((0, now + timedelta(days=1)), *rows)
    return table


@pytest.fixture
def followed(lake: Lake, leaving: Table, spark: SparkSession) -> Iterator[Subscription]:
    with subscribe(Lake(lake.root, spark=spark), QUERY, clock="ms") as subscription:
        yield subscription
    drop_views(spark)


def read_until_all_left(followed: Subscription) -> None:
    """Rows leave while those that left are computed."""
    there: Counter[int] = Counter()
    while +there != {0: 1}:
        for _, diff, k in ready(followed):
            there[k] += diff


def test_what_is_there_now_has_an_end(followed: Subscription, leaving: Table) -> None:
    read_until_all_left(followed)
    assert not ready(followed)

    leaving.insert((31, datetime.now(UTC) + timedelta(days=1)))

    assert [row[1:] for row in ready(followed)] == [(1, 31)]


def test_a_wait_ends_at_its_deadline(followed: Subscription) -> None:
    read_until_all_left(followed)
    assert followed.next_batch(timeout=1.0) is None
    assert followed.fetch(1, timeout=1.0).num_rows == 0


@pytest.mark.usefixtures("leaving")
def test_the_command_line_ends_after_its_timeout(lake: Lake) -> None:
    command = ["subscribe", "--query", QUERY, "--timeout", "1s", "--format", "ndjson"]
    done = CliRunner().invoke(app, command, env={"STREAMTABLES_ROOT": str(lake.root)})
    assert done.exit_code == 0, done.output
    assert 0 in [json.loads(line)["k"] for line in done.stdout.splitlines()]
