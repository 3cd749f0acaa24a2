"""A query that uses the current time has another timestamp each second. Here each millisecond is
due, so that one is computed for longer than it takes until the next one is due: "what is there now"
must end all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from changes.reading import ready
from changes.table import Table
from dagster_streamtables import Lake, Subscription, subscribe
from dagster_streamtables.changes.clock import millisecond_clock
from dagster_streamtables.runtime.spark.session_cleanup import drop_views

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("until", pa.timestamp("us", tz="UTC"))])
QUERY = "SELECT k FROM t WHERE until > CURRENT_TIMESTAMP()"


@pytest.fixture
def followed(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Subscription]:
    """Row 0 stays; thirty leave, one in each tenth of a second."""
    monkeypatch.setattr(millisecond_clock, "_TIMED_EVERY", 1)
    now = datetime.now(UTC)
    leaving = [(k, now + timedelta(seconds=1 + k / 10)) for k in range(1, 31)]
    Table.new(lake.location("t"), SCHEMA).insert((0, now + timedelta(days=1)), *leaving)
    with subscribe(Lake(lake.root, spark=spark), QUERY, clock="ms") as subscription:
        yield subscription
    drop_views(spark)


def read_until_all_left(followed: Subscription) -> None:
    """Rows leave while those that left are computed."""
    there: Counter[int] = Counter()
    while +there != {0: 1}:
        for _, diff, k in ready(followed):
            there[k] += diff


def test_what_is_there_now_has_an_end(followed: Subscription, lake: Lake) -> None:
    read_until_all_left(followed)
    assert not ready(followed)

    Table(lake.location("t"), SCHEMA).insert((31, datetime.now(UTC) + timedelta(days=1)))

    assert [row[1:] for row in ready(followed)] == [(1, 31)]


def test_a_wait_ends_at_its_deadline(followed: Subscription) -> None:
    read_until_all_left(followed)
    assert followed.next_batch(timeout=1.0) is None
    assert followed.fetch(1, timeout=1.0).num_rows == 0
