"""The rules of SUBSCRIBE, each by an example; docs/subscribe_conformance.md lists them.

What is followed is the example history of conftest.py, by versions and by milliseconds. Of the
latter each commit has one, since somebody looked after each; the tests show it as the version that
it means.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.conftest import example_history
from changes.reading import contents, plain, read, ready, sorted_within
from changes.table import Table
from dagster_streamtables import AtLeast, Debezium, Lake, Subscription, Upsert, subscribe
from dagster_streamtables.changes import tail
from dagster_streamtables.changes.output.row_formats import CopyFormat
from dagster_streamtables.errors import EmptyBoundsWarning, RefusedOperation, StreamTablesError

PAGE = Path(__file__).parents[2] / "docs" / "subscribe_conformance.md"
CHANGES = [
    (1, 1, 1, "a"), (1, 1, 2, "b"), (2, -1, 1, "a"), (2, 1, 1, "A"), (3, -1, 2, "b"),
    (4, 2, 3, "c"), (6, -2, 3, "c"),
]  # fmt: skip
BEFORE_AND_AFTER = ["k", "before_v", "after_v"]
"""The columns of `Debezium("k")`."""
FAR = datetime(2999, 1, 1, tzinfo=UTC)


@dataclass
class Example:
    """A lake whose table ``t`` was followed while it was written."""

    lake: Lake
    clock: str
    table: Table
    times: list[int]
    """The timestamp of each version."""

    def commit(self, method: str, *given: Any, **values: str) -> None:
        getattr(self.table, method)(*given, **values)
        self.look()

    def look(self) -> None:
        if self.clock == "version":
            self.times.append(self.table.version)
            return
        with subscribe(self.lake, "t", clock="ms") as now:
            now.fetch(0)
            ready(now)
            assert now.timestamp is not None
            self.times.append(now.timestamp)

    def at(self, version: int | None) -> int | None:
        return None if version is None else self.times[version]

    def open(self, relation: str = "t", **options: Any) -> Subscription:
        for bound in ("as_of", "up_to"):
            if isinstance(options.get(bound), int):
                options[bound] = self.at(options[bound])
        return subscribe(self.lake, relation, **{"clock": self.clock, **options})

    def read(self, relation: str = "t", **options: Any) -> list[Any]:
        names = BEFORE_AND_AFTER if isinstance(options.get("envelope"), Debezium) else None
        with self.open(relation, **options) as subscription:
            return self.shown(ready(subscription, names))

    def shown(self, rows: list[Any]) -> list[Any]:
        """Timestamps as versions; a progress row comes right after what it closes."""
        known = {time + 1: version + 1 for version, time in enumerate(self.times)}
        known |= {time: version for version, time in enumerate(self.times)}
        return sorted_within([(known[row[0]], *row[1:]) for row in rows])


@pytest.fixture(params=["version", "ms"])
def empty(request: pytest.FixtureRequest, lake: Lake, t: Table) -> Example:
    example = Example(lake, request.param, t, [])
    example.look()
    return example


@pytest.fixture
def example(empty: Example) -> Example:
    for _ in example_history(empty.table):
        empty.look()
    return empty


def data(rows: list[Any]) -> list[Any]:
    return [(row[0], *row[2:]) for row in rows if not row[1]]


def closed(rows: list[Any]) -> list[int]:
    return [row[0] for row in rows if row[1]]


def test_r01_columns(example: Example) -> None:
    assert example.open().schema.names == ["_timestamp", "_diff", "k", "v"]
    names = ["mz_timestamp", "mz_progressed", "mz_diff", "k", "v"]
    schema = example.open(progress=True, names="materialize").schema
    assert schema.names == names
    assert not schema.field("mz_timestamp").nullable
    assert not schema.field("mz_progressed").nullable


def test_r02_columns_of_an_envelope(example: Example) -> None:
    found = example.open(envelope=Upsert("v"), progress=True).schema.names
    assert found == ["_timestamp", "_progressed", "_state", "v", "k"]


def test_r03_progress_and_envelopes_make_columns_nullable(lake: Lake) -> None:
    strict = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string(), False)])
    Table.new(lake.location("t"), strict)
    for options in ({"progress": True}, {"progress": True, "envelope": Upsert("k")}):
        schema = subscribe(lake, "t", **options).schema
        assert schema.field("k").nullable
        assert schema.field("v").nullable
    assert subscribe(lake, "t", envelope=Upsert("k")).schema.field("v").nullable


def test_r04_timestamps_never_decrease(example: Example) -> None:
    with example.open(as_of=0) as subscription:
        found = [row[0] for row in plain(subscription.fetch(None, timeout=0))]
    assert found == sorted(found)
    assert example.shown([(each,) for each in found]) == [(row[0],) for row in CHANGES]
    if example.clock == "ms":
        assert all(abs(each - time.time() * 1000) < 3_600_000 for each in found)


def test_r05_the_order_within_a_timestamp_is_any(example: Example) -> None:
    assert example.read(as_of=0) == sorted_within(CHANGES)


def test_r06_consolidated(example: Example) -> None:
    assert (4, 2, 3, "c") in example.read(as_of=0)
    example.commit("update", "k = 1", v="v")  # to what it was
    example.commit("overwrite", (1, "A"), (5, "e"))  # only one row is new
    assert example.read(as_of=6, snapshot=False) == [(8, 1, 5, "e")]


def test_r07_adding_up_gives_the_relation(example: Example) -> None:
    example.commit("restore", 4)
    rows = example.read(as_of=0)
    for version in range(8):
        assert contents(rows, version) == example.table.rows(version)
        assert all(row[1] > 0 for row in example.read(as_of=version, up_to=None)[:1])


def test_r08_a_fetch_may_split_a_timestamp(example: Example) -> None:
    with example.open(as_of=1, snapshot=False) as subscription:
        halves = [plain(subscription.fetch(1)), plain(subscription.fetch(1))]
        assert [row[0] for part in halves for row in part] == [example.at(2)] * 2
        assert halves[0] != halves[1]
    with example.open(as_of=1, snapshot=False) as subscription:
        sizes = [batch.num_rows for batch in islice(subscription, 4)]
    assert sizes == [2, 1, 1, 1]


def test_r08_a_large_timestamp_comes_in_several_batches(example: Example) -> None:
    with example.open(as_of=1, batch_rows=1, progress=True) as subscription:
        found = []
        for batch in islice(subscription, 4):
            found.append((batch.column(1)[0].as_py(), subscription.partial))
            if subscription.partial:  # not all of it was given out: it comes again
                half = subscription.token
    assert found == [(True, False), (False, True), (False, False), (True, False)]
    with example.open(resume=half) as subscription:
        assert example.shown(ready(subscription)) == sorted_within(CHANGES)


def test_r09_as_of_is_inclusive(example: Example) -> None:
    assert example.read(as_of=3) == [(3, 1, 1, "A"), (4, 2, 3, "c"), (6, -2, 3, "c")]


def test_r10_without_a_snapshot_only_later_changes(example: Example) -> None:
    assert example.read(as_of=2, snapshot=False)[0] == (3, -1, 2, "b")


def test_r11_from_a_time_on_is_as_of_the_one_before(example: Example) -> None:
    for progress in range(1, 6):
        rows = example.read(as_of=progress - 1, snapshot=False)
        assert rows == sorted_within([row for row in CHANGES if row[0] >= progress])


@pytest.mark.parametrize("as_of", [None, "latest"])
def test_r12_no_as_of_is_now(example: Example, as_of: str | None) -> None:
    assert example.read(as_of=as_of) == [(6, 1, 1, "A")]


def test_r13_a_time_that_is_no_longer_kept(example: Example) -> None:
    example.table.clean_log()
    with pytest.raises(StreamTablesError, match='version 2 of "t" is no longer available'):
        example.read(as_of=2, progress=True)


def test_r14_a_time_in_the_future_is_waited_for(example: Example) -> None:
    with example.open(as_of=FAR) as subscription:
        assert subscription.fetch(1, timeout=0.01).num_rows == 0
    if example.clock == "version":
        with subscribe(example.lake, "t", as_of=8) as subscription:
            assert ready(subscription) == []
            example.table.insert((7, "x"))
            assert ready(subscription) == []
            example.table.insert((8, "y"))
            assert sorted(ready(subscription)) == [
                (8, 1, 1, "A"), (8, 1, 7, "x"), (8, 1, 8, "y")
            ]  # fmt: skip


def test_r15_at_least(example: Example) -> None:
    assert example.read(as_of=AtLeast(example.times[3]))[0] == (3, 1, 1, "A")
    example.table.clean_log()
    assert example.read(as_of=AtLeast(example.times[1])) == [(6, 1, 1, "A")]


def test_r16_up_to_is_exclusive(example: Example) -> None:
    with example.open(as_of=1, up_to=4) as subscription:
        found = [row for batch in subscription for row in plain(batch)]  # it ends by itself
    assert example.shown(found) == sorted_within([row for row in CHANGES if row[0] < 4])


def test_r17_equal_bounds_are_empty(example: Example) -> None:
    with pytest.warns(EmptyBoundsWarning):
        assert example.read(as_of=3, up_to=3, progress=True) == [(3, True, None, None, None)]


def test_r18_bounds_in_the_wrong_order(example: Example) -> None:
    with pytest.raises(RefusedOperation, match="before it begins"):
        example.read(as_of=3, up_to=2, progress=True)
    with pytest.raises(RefusedOperation, match="before it begins"):
        example.read(up_to=2, progress=True)


def test_r19_times_are_values_of_python(example: Example) -> None:
    for now in (datetime.now(UTC), datetime.now(UTC).isoformat()):
        assert [row[1:] for row in read(example.lake, "t", clock=example.clock, as_of=now)] == [
            (1, 1, "A")
        ]
    assert example.read(as_of=str(example.times[3]))[0] == (3, 1, 1, "A")
    for wrong in ("k", "NULL", "1/0", -1, "now()"):
        with pytest.raises(RefusedOperation, match="is not a time"):
            subscribe(example.lake, "t", as_of=wrong)


@pytest.mark.spark
@pytest.mark.smoke("subscriptions to queries")
def test_r20_a_sum_without_a_snapshot(lake: Lake, t: Table) -> None:
    t.insert((1, "a"), (2, "b"))
    t.insert((3, "c"))
    found = read(lake, "SELECT SUM(k) AS s FROM t", as_of=1, snapshot=False)
    assert sorted(found) == [(2, -1, 3), (2, 1, 6)]


@pytest.mark.spark
def test_r21_an_error_in_what_is_not_shown_is_not_shown(lake: Lake, t: Table) -> None:
    t.insert((0, "a"))
    t.delete("k = 0")
    t.insert((5, "b"))
    assert read(lake, "SELECT 10 DIV k AS x FROM t", as_of=2, snapshot=False) == [(3, 1, 2)]


@pytest.mark.parametrize("snapshot", [True, False])
def test_r22_progress_comes_first(example: Example, snapshot: bool) -> None:
    with example.open(as_of=3, snapshot=snapshot, progress=True) as subscription:
        first = plain(subscription.fetch(1))
    assert example.shown(first) == [(3, True, None, None, None)]


def test_r23_progress_closes_what_is_before_it(example: Example) -> None:
    with example.open(as_of=3, progress=True) as subscription:
        seen = -1
        for row in ready(subscription):
            assert row[0] >= seen
            seen = row[0] if row[1] else seen
            assert row[1] is False or row[2:] == (None, None, None)


def test_r24_data_is_not_progress(example: Example) -> None:
    assert data(example.read(as_of=0, progress=True)) == sorted_within(CHANGES)


def test_r25_progress_after_each_batch_and_regularly(example: Example) -> None:
    with example.open(as_of=3, progress=True, progress_interval=0.0) as subscription:
        rows = plain(subscription.fetch(8, timeout=2))
    found = [row[0] for row in rows if row[1]]
    first = [example.at(3), *(example.times[n] + 1 for n in (3, 4, 5, 6))]
    if example.clock == "version":  # no version, no progress
        assert found == first
        return
    assert found[:5] == first[:5]
    with example.open(progress=True, progress_interval=0.0) as subscription:
        idle = [row[0] for row in plain(subscription.fetch(6, timeout=5)) if row[1]]
    assert len(set(idle)) == len(idle) == 5
    assert idle == sorted(idle)


@pytest.mark.spark
def test_r26_a_finite_relation_ends_without_progress(lake: Lake) -> None:
    with subscribe(lake, "SELECT 1 AS x", progress=True, recompute=True) as subscription:
        rows = plain(subscription.fetch(None))
    assert [row[1:] for row in rows] == [(True, None, None), (False, 1, 1)]


def test_r27_progress_is_the_same_in_an_envelope(example: Example) -> None:
    raw = closed(example.read(as_of=0, progress=True))
    assert closed(example.read(as_of=0, progress=True, envelope=Upsert("k"))) == raw
    assert closed(example.read(as_of=0, progress=True, order_by="k")) == raw


def enveloped(example: Example, kind: type[Upsert] | type[Debezium]) -> list[Any]:
    return example.read(as_of=0, envelope=kind("k"))


def test_r28_states_of_the_envelopes(example: Example) -> None:
    assert enveloped(example, Upsert)[:4] == [
        (1, "upsert", 1, "a"), (1, "upsert", 2, "b"), (2, "upsert", 1, "A"), (3, "delete", 2, None)
    ]  # fmt: skip
    assert enveloped(example, Debezium)[:4] == [
        (1, "insert", 1, None, "a"), (1, "insert", 2, None, "b"), (2, "upsert", 1, "a", "A"),
        (3, "delete", 2, "b", None),
    ]  # fmt: skip
    assert example.read(as_of=3, envelope=Debezium("k"))[0] == (3, "insert", 1, None, "A")


def test_r29_anything_else_violates_the_key(example: Example) -> None:
    assert enveloped(example, Upsert)[4:] == [
        (4, "key_violation", 3, None), (6, "key_violation", 3, None)
    ]  # fmt: skip
    example.commit("overwrite", (1, "x"), (1, "y"))
    assert enveloped(example, Debezium)[-1] == (7, "key_violation", 1, None, None)


TEN = [
    ("insert", [(1, "1")], ("upsert", 1, "1"), ("insert", 1, None, "1")),
    ("insert", [(1, "2")], ("upsert", 1, "2"), ("insert", 1, None, "2")),
    ("insert", [(1, "3")], ("upsert", 1, "3"), ("insert", 1, None, "3")),
    ("delete", "v = '1'", ("delete", 1, None), ("delete", 1, "1", None)),
    ("delete", "v = '2' OR v = '3'", ("key_violation", 1, None), ("key_violation", 1, None, None)),
    ("insert", [(1, "4")], ("upsert", 1, "4"), ("insert", 1, None, "4")),
    ("update", "v = '4'", ("upsert", 1, "5"), ("upsert", 1, "4", "5")),
    ("insert", [(1, "6"), (1, "7")], ("key_violation", 1, None), ("key_violation", 1, None, None)),
    ("delete", "v <> '5'", ("key_violation", 1, None), ("key_violation", 1, None, None)),
    ("delete", "k = 1", ("delete", 1, None), ("delete", 1, "5", None)),
]


def test_r30_ten_steps_without_a_memory(empty: Example) -> None:
    for method, given, _, _ in TEN:
        match method:
            case "insert":
                empty.commit("insert", *given)
            case "delete":
                empty.commit("delete", given)
            case _:
                empty.commit("update", given, v="'5'")
    numbered = list(enumerate(TEN, 1))
    assert enveloped(empty, Upsert) == [(n, *step[2]) for n, step in numbered]
    assert enveloped(empty, Debezium) == [(n, *step[3]) for n, step in numbered]


def test_r31_no_event_says_that_a_violation_ended(example: Example) -> None:
    assert enveloped(example, Upsert)[-1] == (6, "key_violation", 3, None)


def test_r32_another_key_is_a_deletion_and_an_insertion(example: Example) -> None:
    example.commit("update", "k = 1", k="9")
    assert enveloped(example, Upsert)[-2:] == [(7, "delete", 1, None), (7, "upsert", 9, "A")]


def test_r33_several_updates_in_one_timestamp_are_one(lake: Lake, t: Table) -> None:
    t.insert((1, "v1"))
    with subscribe(lake, "t", clock="ms", snapshot=False, envelope=Debezium("k")) as subscription:
        assert ready(subscription) == []
        t.update("k = 1", v="'v2'")
        t.update("k = 1", v="'v3'")
        assert [row[1:] for row in ready(subscription, BEFORE_AND_AFTER)] == [
            ("upsert", 1, "v1", "v3")
        ]


def test_r34_a_key_of_all_columns(example: Example) -> None:
    assert example.read(as_of=3, envelope=Upsert("k", "v"))[0] == (3, "upsert", 1, "A")


def test_r35_keys_in_their_order_before_the_values(lake: Lake) -> None:
    fields = [(name, pa.int64()) for name in "abc"]
    Table.new(lake.location("t"), pa.schema(fields)).insert((1, 2, 3))
    assert read(lake, "t", envelope=Upsert("c", "a")) == [(1, "upsert", 1, 2, 3)], "a, b, c"
    names = subscribe(lake, "t", envelope=Upsert("c", "a")).schema.names
    assert names == ["_timestamp", "_state", "c", "a", "b"]
    names = subscribe(lake, "t", envelope=Debezium("b")).schema.names
    assert names == ["_timestamp", "_state", "b", "before_a", "before_c", "after_a", "after_c"]


def test_r36_null_is_a_key_and_the_last_one(example: Example) -> None:
    example.commit("overwrite", (None, "n"), (1, "A"), (2, "b"))
    with example.open(envelope=Upsert("k")) as subscription:
        assert [row[2] for row in ready(subscription)] == [1, 2, None]


def test_r37_wrong_keys(example: Example) -> None:
    for key, message in (("x", 'column "x" does not exist'), ("k + 1", "invalid key")):
        with pytest.raises(RefusedOperation, match=message):
            example.open(envelope=Upsert(key))
    with pytest.raises(RefusedOperation, match="more than once"):
        Upsert("k", "k")


def test_r38_sorted_by_key(empty: Example) -> None:
    empty.commit("insert", (3, "c"), (None, "n"), (1, "a"), (2, "b"))
    with empty.open(envelope=Debezium("k")) as subscription:
        assert [row[2] for row in ready(subscription, BEFORE_AND_AFTER)] == [1, 2, 3, None]


def test_r39_progress_in_an_envelope_is_null(example: Example) -> None:
    found = example.read(as_of=3, progress=True, envelope=Debezium("k"))
    assert found[1] == (3, True, None, None, None, None)


def test_r40_one_modifier(example: Example) -> None:
    with pytest.raises(RefusedOperation, match="cannot be combined"):
        example.open(envelope=Upsert("k"), order_by="k")


def test_r41_order_within_a_timestamp(example: Example) -> None:
    with example.open(as_of=1, snapshot=False, up_to=3, order_by=["k", 1]) as subscription:
        assert [row[1:] for row in ready(subscription)] == [(-1, 1, "a"), (1, 1, "A")]
    with example.open(as_of=1, up_to=2, order_by="-v") as subscription:
        assert [row[3] for row in ready(subscription)] == ["b", "a"]


def test_r42_wrong_orders(example: Example) -> None:
    for wrong in ("k + 1", "x", 7):
        with pytest.raises(RefusedOperation):
            example.open(order_by=wrong)


@pytest.mark.spark
def test_r43_limit_is_maintained(lake: Lake, t: Table) -> None:
    t.insert((2, "b"), (3, "c"), (4, "d"))
    t.insert((1, "a"))
    found = read(lake, "SELECT k FROM t ORDER BY k LIMIT 3", as_of=1, snapshot=False)
    assert sorted(found) == [(2, -1, 4), (2, 1, 1)]


@pytest.mark.spark
def test_r44_any_select(lake: Lake, t: Table) -> None:
    t.insert((1, "a"))
    t.insert((1, "b"))
    found = read(lake, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", as_of=0)
    assert sorted_within(found) == [(1, 1, 1, 1), (2, -1, 1, 1), (2, 1, 1, 2)]


def test_r45_what_can_be_followed(example: Example) -> None:
    for relation in ("t", example.table.location, f"delta.`{example.table.location}`"):
        assert example.read(relation) == [(6, 1, 1, "A")]
    with pytest.raises(StreamTablesError):
        example.open("DELETE FROM t")


def test_r46_options_are_arguments(example: Example) -> None:
    with pytest.raises(TypeError, match="progres"):
        example.open(progres=True)
    with pytest.raises(StreamTablesError, match="progress"):
        example.open(progress="yes")


def test_r47_fetch_waits_for_a_row(example: Example) -> None:
    with example.open(as_of=3) as subscription:
        assert subscription.fetch().num_rows == 1
        assert subscription.fetch(None).num_rows == 2


def test_r48_fetch_with_a_timeout(example: Example) -> None:
    with example.open(as_of=3) as subscription:
        assert subscription.fetch(3, timeout=3600).num_rows == 3
        begun = time.monotonic()
        assert subscription.fetch(4, timeout=0.05).num_rows == 0
        assert time.monotonic() - begun >= 0.05
        assert subscription.fetch(4, timeout=0).num_rows == 0


def test_r49_fetch_after_the_end(example: Example) -> None:
    with example.open(as_of=1, up_to=4) as subscription:
        assert subscription.fetch(0).num_rows == 0
        assert subscription.fetch(None, timeout=0).num_rows == 5
        assert subscription.fetch().num_rows == 0
    with example.open(progress=True) as fixed:
        assert fixed.fetch(0).num_rows == 0  # this is when it begins
        example.commit("insert", (7, "x"))
        rows = example.shown(ready(fixed))
    assert data(rows) == [(6, 1, 1, "A"), (7, 1, 7, "x")]


@pytest.mark.spark
def test_r50_ends(lake: Lake) -> None:
    values = "SELECT * FROM VALUES (1), (2), (3) AS t(x)"
    for snapshot, count in ((True, 3), (False, 0)):
        with subscribe(lake, values, snapshot=snapshot, recompute=True) as subscription:
            assert subscription.fetch(None).num_rows == count
            assert list(subscription) == []


@pytest.mark.spark
def test_r51_an_error_stays(lake: Lake, t: Table) -> None:
    t.insert((1, "7"))
    with subscribe(lake, "SELECT CAST(v AS INT) AS n FROM t") as subscription:
        assert ready(subscription) == [(1, 1, 7)]
        t.insert((2, "x"))
        for _ in range(2):
            with pytest.raises(Exception, match=r"(?i)cast"):
                ready(subscription)
            t.delete("v = 'x'")


def test_r52_several_at_once(example: Example) -> None:
    with example.open(as_of=0) as one, example.open(as_of=3) as two:
        assert ready(one) != ready(two)
    assert one.fetch().num_rows == 0


def test_r53_nothing_is_read_ahead(example: Example) -> None:
    with example.open(as_of=0) as slow:
        next(iter(slow))
        assert slow.timestamp == example.at(1)


def test_r56_history_is_kept_by_slots(example: Example) -> None:
    with example.open(slot="s", as_of=3) as subscription:
        ready(subscription)
        assert example.lake.slots.read("s").held["t"].version == 3
        subscription.ack()
    assert example.lake.slots.read("s").held["t"].version == 6


def test_r57_every_source_must_reach_back(example: Example) -> None:
    test_r13_a_time_that_is_no_longer_kept(example)


def test_r58_exactly_once_by_the_token(example: Example) -> None:
    stored: list[Any] = []
    token = None
    for _ in range(9):  # each of these processes is killed after one batch
        subscription = example.open(**{"resume": token} if token else {"as_of": 0})
        stored += plain(subscription.fetch(2, timeout=0))
        token = subscription.token
    assert example.shown(stored) == sorted_within(CHANGES)


def test_r59_a_slot_is_moved_by_acknowledging(example: Example) -> None:
    found = []
    for _ in range(5):
        with example.open(slot="s", as_of=0) as subscription:
            found += example.shown(plain(next(iter(subscription))))
            subscription.ack()
    assert found == sorted_within(CHANGES)
    assert example.lake.slots.read("s").expires_at is not None


def test_tail(example: Example) -> None:
    found = tail(example.lake, "t", as_of=3, progress=True)
    assert found.schema.names == ["mz_timestamp", "mz_progressed", "mz_diff", "k", "v"]
    with pytest.raises(TypeError):
        tail(example.lake, "t", up_to=3)  # type: ignore[call-arg]


def test_asynchronous_reading(example: Example) -> None:
    async def first() -> pa.RecordBatch:
        batches = example.open(as_of=3).aiter()
        try:
            return await anext(batches)
        finally:
            await batches.aclose()  # type: ignore[attr-defined]

    assert example.shown(plain(asyncio.run(first()))) == [(3, 1, 1, "A")]


def test_r54_copy_text(example: Example) -> None:
    example.commit("overwrite", (1, None))
    with example.open(order_by=1) as subscription:
        batch = next(iter(subscription))
        assert CopyFormat().batch(batch).split(b"\t")[1:] == [b"1", b"1", b"\\N\n"]


def test_the_page_names_the_tests() -> None:
    rows = re.findall(r"^\| (R\d+) \| (.*) \|$", PAGE.read_text(), flags=re.M)
    assert [name for name, _ in rows] == [f"R{n}" for n in range(1, 60)]
    tests = {n for n in globals() if re.match(r"test_r\d\d_", n)}
    assert {each for _, text in rows for each in re.findall(r"`(test_r\d\d_\w+)`", text)} == tests
    for rule, text in rows:
        for each in re.findall(r"`(test_r\d\d)_\w+`", text):
            assert each == f"test_r{int(rule[1:]):02}"
