"""What a subscription refuses: each its own error, before the first row, with the slot unmoved."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from changes.reading import read, ready
from changes.table import Table
from dagster_streamtables import Lake, Upsert, subscribe
from dagster_streamtables.changes import tail
from dagster_streamtables.errors import (
    EmptyBoundsWarning,
    HistoryUnavailable,
    LostRelation,
    RefusedOperation,
    StreamTablesError,
)

YESTERDAY = datetime.now(UTC) - timedelta(days=1)
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)

WRONG = [
    pytest.param({"envelope": Upsert("x")}, 'column "x" does not exist', id="unknown key"),
    pytest.param({"order_by": "x"}, "x", id="unknown order"),
    pytest.param({"order_by": "k + 1"}, "k \\+ 1", id="order by an expression"),
    pytest.param({"order_by": 9}, "9", id="order by a place that is not there"),
    pytest.param({"envelope": Upsert("k"), "order_by": "k"}, "combined", id="envelope and order"),
    pytest.param({"as_of": 3, "up_to": 2}, "before it begins", id="bounds in the wrong order"),
    pytest.param({"as_of": 9, "up_to": 8}, "before it begins", id="bounds in the future"),
    pytest.param(
        {"as_of": YESTERDAY, "up_to": LONG_AGO}, "before it begins", id="dates in the wrong order"
    ),
    pytest.param({"as_of": -1}, "is not a time", id="negative"),
    pytest.param({"as_of": True}, "as_of is True", id="boolean"),
    pytest.param({"up_to": "soon"}, "is not a time", id="no time"),
    pytest.param({"as_of": LONG_AGO}, "no longer available", id="before the table"),
    pytest.param({"batch_rows": 0}, "batch_rows", id="batches of nothing"),
    pytest.param({"clock": "hours"}, "clock", id="unknown clock"),
    pytest.param({"resume": "abc"}, "damaged", id="no token"),
    pytest.param({"resume": "abc", "slot": "s"}, "combined", id="token and slot"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
@pytest.mark.parametrize("clock", ["version", "ms"])
def test_wrong_options(
    lake: Lake, example: Table, options: dict[str, Any], message: str, clock: str
) -> None:
    options = {"clock": clock, "progress": True, **options}
    with pytest.raises(StreamTablesError, match=message):
        subscribe(lake, "t", **options)
    if "resume" not in options:
        with pytest.raises(StreamTablesError, match=message):
            subscribe(lake, "t", slot="mine", **options)
        assert lake.slots.names() == []  # none was made for it


@pytest.mark.parametrize("options", [{"as_of": 3}, {"as_of": 3, "slot": "s"}])
def test_equal_bounds_are_empty(lake: Lake, example: Table, options: dict[str, Any]) -> None:
    with pytest.warns(EmptyBoundsWarning, match="begins and ends at 3"):
        assert read(lake, "t", up_to=3, **options) == []


@pytest.mark.parametrize("text", ["nothing", "/nowhere/at/all", "", "a b", "t; DROP TABLE t"])
def test_no_relation(lake: Lake, t: Table, text: str) -> None:
    with pytest.raises(StreamTablesError):
        subscribe(lake, text)


def test_tail_refuses_queries(lake: Lake, t: Table) -> None:
    with pytest.raises(RefusedOperation, match="by its name"):
        tail(lake, "SELECT * FROM t")


def test_every_damaged_byte_of_a_token(lake: Lake, example: Table) -> None:
    with subscribe(lake, "t", as_of=3) as subscription:
        ready(subscription)
        token = subscription.token
    assert token is not None
    for n, letter in enumerate(token):
        other = "B" if letter == "A" else "A"
        with pytest.raises(RefusedOperation, match="damaged"):
            subscribe(lake, "t", resume=token[:n] + other + token[n + 1 :])
        with pytest.raises(RefusedOperation, match="damaged"):
            subscribe(lake, "t", resume=token[:n] + token[n + 1 :])
    for spelled in (f"{token}=", f"{token} ", f" {token}", f"{token}A", "é"):
        with pytest.raises(RefusedOperation, match="damaged"):
            subscribe(lake, "t", resume=spelled)
    assert base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def test_the_token_of_another_subscription(lake: Lake, example: Table) -> None:
    Table.new(lake.location("other"))
    with subscribe(lake, "other") as other:
        ready(other)
        token = other.token
    with pytest.raises(RefusedOperation, match="another subscription"):
        subscribe(lake, "t", resume=token)
    with pytest.raises(RefusedOperation, match='by the clock "version"'):
        subscribe(lake, "other", resume=token, clock="ms")


def acknowledged(lake: Lake, name: str = "s") -> str:
    """A slot that has read the first three versions, and its token."""
    with subscribe(lake, "t", slot=name, as_of=1, up_to=4) as subscription:
        ready(subscription)
        subscription.ack()
    return lake.slots.read(name).token


def test_a_second_reader_of_a_slot(lake: Lake, example: Table) -> None:
    token = acknowledged(lake)
    with subscribe(lake, "t", slot="s") as first:
        with pytest.raises(StreamTablesError, match='slot "s" has a reader'):
            subscribe(lake, "t", slot="s")
        assert [row[0] for row in ready(first)] == [4, 6]
    assert lake.slots.read("s").token == token


def test_a_slot_of_another_table(lake: Lake, example: Table) -> None:
    token = acknowledged(lake)
    Table.new(lake.location("other"))
    with pytest.raises(RefusedOperation, match='slot "s" follows another relation'):
        subscribe(lake, "other", slot="s")
    with pytest.raises(RefusedOperation, match="clock"):
        subscribe(lake, "t", slot="s", clock="ms")
    assert lake.slots.read("s").token == token
    with subscribe(lake, "t", slot="s") as subscription:  # nobody holds it
        assert [row[0] for row in ready(subscription)] == [4, 6]


def test_a_subscription_that_ended_can_be_acknowledged(lake: Lake, example: Table) -> None:
    subscription = subscribe(lake, "t", slot="s", as_of=0, up_to=4)
    rows = list(subscription)
    subscription.ack()

    assert len(rows) == 3
    assert lake.slots.read("s").held["t"].version == 3
    # Another reader was there in between: it would go back.
    late = subscribe(lake, "t", slot="s", up_to=7)
    ready(late)
    with subscribe(lake, "t", slot="s", up_to=5) as other:
        ready(other)
        other.ack()
    with pytest.raises(StreamTablesError, match="no longer read by this reader"):
        late.ack()
    assert lake.slots.read("s").held["t"].version == 4


@pytest.mark.parametrize("lose", [Table.vacuum, Table.clean_log])
def test_history_that_is_gone(lake: Lake, example: Table, lose: Callable[[Table], None]) -> None:
    token = acknowledged(lake)
    held = subscribe(lake, "t", as_of=2)
    before = ready(held)
    example.insert((7, "x"))
    lose(example)
    last = example.version

    for options in ({"as_of": 2}, {"as_of": YESTERDAY}, {"resume": token}, {"slot": "s"}):
        with pytest.raises(HistoryUnavailable, match="available"):
            read(lake, "t", progress=True, **options)
    assert lake.slots.read("s").token == token

    # By choice a new snapshot, after which everything goes on.
    assert len(before) == 5
    for options in ({"resume": token}, {"slot": "s"}):
        with subscribe(lake, "t", on_history_lost="resnapshot", **options) as subscription:
            assert sorted(ready(subscription)) == [(last, 1, 1, "A"), (last, 1, 7, "x")]
            assert subscription.snapshots == 1
            if "slot" in options:
                subscription.ack()
    with subscribe(lake, "t", slot="s") as subscription:
        example.insert((8, "y"))
        assert ready(subscription) == [(last + 1, 1, 8, "y")]


@pytest.mark.long
def test_a_vacuum_while_it_reads(lake: Lake, example: Table) -> None:
    with subscribe(lake, "t", as_of=1, on_history_lost="resnapshot") as subscription:
        assert len(subscription.fetch(2, timeout=0)) == 2
        example.insert((7, "x"))
        example.insert((8, "x"))
        example.overwrite((9, "z"))
        example.vacuum()
        assert ready(subscription)[-1][1:] == (1, 9, "z")
        assert subscription.snapshots == 2


def test_a_dropped_table(lake: Lake, example: Table) -> None:
    token = acknowledged(lake)
    open_ = subscribe(lake, "t")
    ready(open_)
    shutil.rmtree(example.location)

    for options in ({"resume": token}, {"slot": "s"}):
        with pytest.raises(StreamTablesError, match='"t" was dropped'):
            subscribe(lake, "t", **options)
    for _ in range(2):  # an error stays
        with pytest.raises(LostRelation, match='"t" was dropped'):
            open_.fetch(1, timeout=0)

    Table.new(lake.location("t"))
    for options in ({"resume": token}, {"slot": "s"}):
        with pytest.raises(StreamTablesError, match="another table was created in its place"):
            subscribe(lake, "t", **options)
    assert lake.slots.read("s").token == token


def test_a_table_that_is_put_back_from_a_copy(lake: Lake, example: Table, tmp_path: Path) -> None:
    shutil.copytree(example.location, tmp_path / "copy")
    example.insert((7, "x"))
    with subscribe(lake, "t", slot="s") as subscription:
        ready(subscription)
        subscription.ack()
        token = subscription.token
    shutil.rmtree(example.location)
    shutil.copytree(tmp_path / "copy", example.location)

    for _ in range(3):  # behind, level and ahead
        for options in ({"resume": token}, {"slot": "s"}):
            with pytest.raises(HistoryUnavailable, match="version 7"):
                subscribe(lake, "t", **options)
        example.insert((8, "y"))
    assert lake.slots.read("s").token == token


@pytest.mark.parametrize(
    ("new", "message"),
    [({"k": [1]}, "was dropped"), ({"k": [1], "v": [5]}, "is bigint now")],
    ids=["dropped", "another type"],
)
def test_columns_that_are_no_longer_what_they_were(
    lake: Lake, example: Table, new: dict[str, list[int]], message: str
) -> None:
    token = acknowledged(lake)
    write_deltalake(example.location, pa.table(new), mode="overwrite", schema_mode="overwrite")

    for options in ({"resume": token}, {"slot": "s"}, {"as_of": 5}):
        with subscribe(lake, "t", **options) as subscription, pytest.raises(LostRelation) as lost:
            while True:
                subscription.fetch(1, timeout=0)
        assert message in str(lost.value)
    assert lake.slots.read("s").token == token


def test_a_column_that_is_added(lake: Lake, example: Table) -> None:
    token = acknowledged(lake)
    example.add_column("extra", "integer")
    example.insert((7, "x"))

    for options in ({"resume": token}, {"slot": "s"}, {"as_of": 3}):
        with subscribe(lake, "t", **options) as subscription:
            assert subscription.schema.names[2:] == ["k", "v"]
            assert ready(subscription)[-1] == (8, 1, 7, "x")
            # Also what it read after the column was there can be resumed.
            assert read(lake, "t", resume=subscription.token) == []
    assert read(lake, "t", as_of=7)[-1] == (8, 1, None, 7, "x"), "extra, k, v"


@pytest.mark.long
def test_a_clone_whose_files_are_those_of_another_table(
    spark: SparkSession, lake: Lake, example: Table
) -> None:
    example.insert((7, "x"))
    clone = f"delta.`{lake.location('clone')}`"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE delta.`{example.location}`")
    with subscribe(lake, "clone", order_by="k") as subscription:
        assert ready(subscription) == [(0, 1, 1, "A"), (0, 1, 7, "x")]
        token = subscription.token
        spark.sql(f"DELETE FROM {clone} WHERE k = 7")
        assert ready(subscription) == [(1, -1, 7, "x")]

    assert read(lake, "clone", resume=token) == [(1, -1, 7, "x")]
    shutil.rmtree(example.location)
    with pytest.raises(HistoryUnavailable, match="available"):
        subscribe(lake, "clone", resume=token)
