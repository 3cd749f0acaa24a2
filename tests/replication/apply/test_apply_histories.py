"""Random changes of hostile values against a model that applies one after the other."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from changes.table import FEED
from dagster_streamtables import Lake, subscribe
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.contract import Choices
from dagster_streamtables.replication.model.replication_model import PublishedTable
from replication.apply.published import Model, at, changes, counted, stored

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bigint": (pa.int64(), [0, 1, 2, -(2**63), 2**63 - 1]),
    "text": (pa.string(), ["", "a", "A", "é'\"", "a\0b"]),
    "bytes": (pa.binary(), [b"", b"\0", b"a", b"\xff"]),
    "double": (pa.float64(), [1.5, math.nan, math.inf, 2.0]),
    "decimal": (pa.decimal128(38, 2), [Decimal(f"{x}.00") for x in (0, -1, "9" * 36)]),
    "time": (pa.timestamp("us", "UTC"), [datetime(y, 1, 1, tzinfo=UTC) for y in (1, 1890, 2024)]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)]),
    "boolean": (pa.bool_(), [True, False]),
}
NESTED = pa.struct([("l", pa.list_(pa.float64())), ("s", pa.string())])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "v": (pa.float64(), [0.0, -0.0, math.nan, 1.5, None]),
    "w": (pa.string(), ["", "x", None]),
    "n": (NESTED, [None, {"l": None, "s": ""}, {"l": [0.0, None], "s": None},
                   {"l": [-0.0, None], "s": None}, {"l": [math.nan], "s": "x"}]),
}  # fmt: skip


@st.composite
def histories(draw: st.DrawFn, table: PublishedTable, pools: dict[str, list[Any]]) -> Any:
    """What is in the target, and transactions; half of the changes fit the rows, as a rule."""
    row = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})
    key = table.identity
    unique_by = key and (lambda each: repr([each[name] for name in key]))
    there = draw(st.lists(row, max_size=5, unique_by=unique_by))
    rows = there + draw(st.lists(row, min_size=1, max_size=4))
    kind = st.sampled_from(["insert", "insert", "update", "update", "move", "delete", "truncate"])
    return there, {
        position: [_change(draw, op, rows, table) for op in draw(st.lists(kind, max_size=6))]
        for position in range(5, 5 + draw(st.integers(1, 4)))
    }


def _change(draw: st.DrawFn, op: str, rows: list[Any], table: PublishedTable) -> tuple[Any, ...]:
    old, new = draw(st.sampled_from(rows)), draw(st.sampled_from(rows))
    if op == "insert":
        return "insert", new
    if op == "delete":
        return "delete", old
    if op == "truncate":
        return ("truncate",) if draw(st.integers(0, 4)) == 0 else ("delete", old)
    hidden = draw(st.sets(st.sampled_from(table.schema.names), max_size=1))
    if table.identity is None:
        return "update", old, {n: old[n] if n in hidden else new[n] for n in new}, *hidden
    if op == "update":
        new = {**new, **{name: old[name] for name in table.identity}}
        return "update", None, new, *(hidden - set(table.identity))
    return "update", old, {n: old[n] if n in hidden else new[n] for n in new}, *hidden


def run(
    table: PublishedTable, there: Any, happened: Any, policy: Any, by_commit: bool, in_memory: int
) -> None:
    place = Path(tempfile.mkdtemp(prefix="histories-"))
    schema = table.schema.append(pa.field("own", pa.int64()))
    there = [{**row, "own": i} for i, row in enumerate(there)]
    try:
        write_deltalake(place, pa.Table.from_pylist(there, schema=schema))
        model = Model(table, there, policy)
        model.extra = {"own": None}
        model.apply(happened)
        choices = Choices(policy, commit_by_commit=by_commit, in_memory=in_memory)
        done = apply_changes(at(place), changes(table, happened), max(happened), choices)
        # Of equal rows, any may be the one that goes: what it has of its own is not compared.
        names = table.schema.names + (["own"] if table.identity else [])
        rows = [{name: row[name] for name in names} for row in model.rows]
        assert stored(place, *names) == counted(rows)
        assert +done.conflicts == +model.conflicts
    finally:
        shutil.rmtree(place)


def check(count: int) -> Any:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


IN_MEMORY = st.sampled_from([0, 3, 1000])
"""All changes are folded in parts, or some, or none."""


def keyed(kind: str, data: st.DataObject, policy: str, by_commit: bool) -> None:
    columns = {"k": KEYS[kind], **VALUES}
    schema = pa.schema([(name, type_) for name, (type_, _) in columns.items()])
    table = PublishedTable("public.t", schema, ("k",))
    pools = {name: pool for name, (_, pool) in columns.items()}
    run(table, *data.draw(histories(table, pools)), policy, by_commit, data.draw(IN_MEMORY))


def whole(names: str, data: st.DataObject, by_commit: bool) -> None:
    schema = pa.schema([(name, VALUES[name][0]) for name in names])
    table = PublishedTable("public.t", schema, None)
    history = data.draw(histories(table, {name: VALUES[name][1] for name in names}))
    run(table, *history, "error", by_commit, data.draw(IN_MEMORY))


POLICIES = st.sampled_from(["apply", "skip"])
COLUMNS = ["vwn", "v", "n", "vw", "wn"]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KEYS)
@check(6)
@given(st.data(), POLICIES, st.booleans())
def test_rows_with_a_key(kind: str, data: st.DataObject, policy: str, by_commit: bool) -> None:
    keyed(kind, data, policy, by_commit)


@pytest.mark.thorough
@pytest.mark.parametrize("names", COLUMNS)
@check(8)
@given(st.data(), st.booleans())
def test_rows_without_a_key(names: str, data: st.DataObject, by_commit: bool) -> None:
    whole(names, data, by_commit)


@pytest.mark.long
@pytest.mark.parametrize("kind", KEYS)
@check(400)
@given(st.data(), POLICIES, st.booleans())
def test_many_with_a_key(kind: str, data: st.DataObject, policy: str, by_commit: bool) -> None:
    keyed(kind, data, policy, by_commit)


@pytest.mark.long
@pytest.mark.parametrize("names", COLUMNS)
@check(400)
@given(st.data(), st.booleans())
def test_many_without_a_key(names: str, data: st.DataObject, by_commit: bool) -> None:
    whole(names, data, by_commit)


@pytest.mark.long
@check(300)
@given(st.data(), st.booleans(), st.booleans())
def test_who_reads_a_target_is_told_what_changed(
    data: st.DataObject, has_key: bool, by_commit: bool
) -> None:
    columns = {**({"k": KEYS["bigint"]} if has_key else {}), "v": VALUES["v"], "w": VALUES["w"]}
    schema = pa.schema([(name, type_) for name, (type_, _) in columns.items()])
    table = PublishedTable("public.t", schema, ("k",) if has_key else None)
    there, happened = data.draw(histories(table, {n: pool for n, (_, pool) in columns.items()}))
    with tempfile.TemporaryDirectory(prefix="histories-") as root:
        lake = Lake(root)
        place = lake.location("t")
        write_deltalake(place, pa.Table.from_pylist(there, schema=schema), configuration=FEED)
        told = Counter({row: -count for row, count in stored(place).items()})
        in_memory = data.draw(IN_MEMORY)
        choices = Choices("apply", commit_by_commit=by_commit, in_memory=in_memory)
        apply_changes(at(place), changes(table, happened), max(happened), choices)
        told.update(stored(place))

        end = DeltaTable(place).version() + 1
        with subscribe(lake, "t", as_of=0, snapshot=False, up_to=end) as found:
            for row in found.fetch(None, timeout=60).to_pylist():
                count = row.pop("_diff")
                del row["_timestamp"]
                told.subtract(dict.fromkeys(counted([row]), count))
        assert not any(told.values())
