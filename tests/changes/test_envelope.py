"""Envelopes: what happened to each key (R28 to R39 of SUBSCRIBE)."""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from changes.diffs import KV, chunk, shown, tuples
from dagster_streamtables import Debezium, Upsert
from dagster_streamtables.changes.output.output_options import sort_indices
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.errors import RefusedOperation

VIOLATED = ("key_violation", 1, None)
# What was done, its consolidated diffs, and what each envelope makes of them.
STEPS: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "the snapshot": (
        [(1, 1, "a"), (1, 2, "b")],
        [("upsert", 1, "a"), ("upsert", 2, "b")],
        [("insert", 1, None, "a"), ("insert", 2, None, "b")],
    ),
    "update 1": ([(1, 1, "A"), (-1, 1, "a")], [("upsert", 1, "A")], [("upsert", 1, "a", "A")]),
    "delete 1": ([(-1, 1, "A")], [("delete", 1, None)], [("delete", 1, "A", None)]),
    "insert two equal rows of key 1": ([(2, 1, "c")], [VIOLATED], [(*VIOLATED, None)]),
    "delete both: nothing says that the violation is over": (
        [(-2, 1, "c")],
        [VIOLATED],
        [(*VIOLATED, None)],
    ),
    "insert two different rows of key 1": (
        [(1, 1, "c"), (1, 1, "d")],
        [VIOLATED],
        [(*VIOLATED, None)],
    ),
    "insert a third: only the changes of this timestamp are looked at": (
        [(1, 1, "e")],
        [("upsert", 1, "e")],
        [("insert", 1, None, "e")],
    ),
    "delete the first, while two are left": (
        [(-1, 1, "c")],
        [("delete", 1, None)],
        [("delete", 1, "c", None)],
    ),
    "delete what is left": ([(-1, 1, "d"), (-1, 1, "e")], [VIOLATED], [(*VIOLATED, None)]),
    "change the key of 2 to 9": (
        [(1, 9, "b"), (-1, 2, "b")],
        [("delete", 2, None), ("upsert", 9, "b")],
        [("delete", 2, "b", None), ("insert", 9, None, "b")],
    ),
}


@pytest.mark.parametrize("did", STEPS)
def test_ten_steps(did: str) -> None:
    diffs, *expected = STEPS[did]
    at = [*STEPS].index(did)
    for envelope, rows in zip((Upsert("k"), Debezium("k")), expected, strict=True):
        shape = RowEncoder(KV, envelope=envelope)

        assert shown(shape, chunk(KV, diffs), timestamp=at) == [(at, *row) for row in rows]


@pytest.mark.parametrize(
    "diffs",
    [
        [(2, 1, "a")],
        [(-2, 1, "a")],
        [(1, 1, "a"), (1, 1, "b")],
        [(-1, 1, "a"), (-1, 1, "b")],
        [(-1, 1, "a"), (2, 1, "b")],
        [(-2, 1, "a"), (1, 1, "b")],
        [(-1, 1, "a"), (1, 1, "b"), (1, 1, "c")],
        [(-1, 1, "a"), (-1, 1, "b"), (1, 1, "c")],
    ],
)
def test_whatever_else_happens_to_a_key_violates_it(diffs: list[Any]) -> None:
    assert shown(RowEncoder(KV, envelope=Upsert("k")), chunk(KV, diffs)) == [
        (1, "key_violation", 1, None)
    ]


def test_keys_come_first_in_the_order_of_the_key_and_all_before_values_before_all_after() -> None:
    schema = pa.schema([(name, pa.int64()) for name in "abcd"])

    assert RowEncoder(schema, envelope=Upsert("c", "a")).schema.names == [
        "_timestamp", "_state", "c", "a", "b", "d",
    ]  # fmt: skip
    assert RowEncoder(schema, envelope=Debezium("c", "a"), progress=True).schema.names == [
        "_timestamp", "_progressed", "_state", "c", "a",
        "before_b", "before_d", "after_b", "after_d",
    ]  # fmt: skip


def test_a_key_of_all_columns_leaves_no_values() -> None:
    diffs = chunk(KV, [(1, 1, "a"), (-1, 1, "b")])

    for envelope in (Upsert("k", "v"), Debezium("k", "v")):
        rows = shown(RowEncoder(KV, envelope=envelope), diffs)
        assert rows == [(1, envelope.inserted, 1, "a"), (1, "delete", 1, "b")]


def test_keys_ascend_and_null_is_a_key_that_comes_last() -> None:
    diffs = chunk(KV, [(-1, None, "old"), (1, 7, "x"), (1, None, "new"), (1, -7, "y")])

    assert shown(RowEncoder(KV, envelope=Debezium("k")), diffs) == [
        (1, "insert", -7, None, "y"),
        (1, "insert", 7, None, "x"),
        (1, "upsert", None, "old", "new"),
    ]


def test_keys_are_sorted_also_where_the_first_and_the_last_are_in_their_places() -> None:
    diffs = chunk(KV, [(1, 1, "a"), (1, 3, "c"), (1, 2, "b"), (1, 4, "d")])

    assert [row[2:] for row in shown(RowEncoder(KV, envelope=Upsert("k")), diffs)] == [
        (1, "a"), (2, "b"), (3, "c"), (4, "d"),
    ]  # fmt: skip


def test_nan_is_one_key_and_so_are_both_zeros() -> None:
    schema = pa.schema([("k", pa.float64()), ("v", pa.string())])
    other_nan = -math.nan
    diffs = [(1, math.nan, "n2"), (1, -0.0, "z2"), (-1, other_nan, "n1"), (-1, 0.0, "z1"),
             (1, math.inf, "i"), (1, None, "null")]  # fmt: skip

    rows = shown(RowEncoder(schema, envelope=Debezium("k")), chunk(schema, diffs))

    assert [row[1] for row in rows] == ["upsert", "insert", "upsert", "insert"]
    assert [row[3:] for row in rows] == [("z1", "z2"), (None, "i"), ("n1", "n2"), (None, "null")]


def test_a_progress_row_is_null_but_for_its_time() -> None:
    assert tuples(RowEncoder(KV, envelope=Upsert("k"), progress=True).progress(8)) == [
        (8, True, None, None, None)
    ]
    assert tuples(RowEncoder(KV, envelope=Debezium("k"), progress=True).progress(8)) == [
        (8, True, None, None, None, None)
    ]


def test_a_key_is_given_in_any_of_three_ways() -> None:
    assert Upsert("k", "l") == Upsert(("k", "l")) == Upsert(["k"], "l")
    assert Upsert("k") != Debezium("k")
    assert repr(Debezium("k", "l")) == "Debezium('k', 'l')"
    assert len({Upsert("k"), Upsert(["k"])}) == 1
    assert pickle.loads(pickle.dumps(Upsert("k"))) == Upsert("k")


def test_a_key_is_written_as_the_relation_writes_it() -> None:
    assert RowEncoder(KV, envelope=Upsert("K")).schema.names == ["_timestamp", "_state", "k", "v"]


def test_names_that_look_like_paths_and_values_of_any_type() -> None:
    nested = pa.struct([("x", pa.list_(pa.map_(pa.string(), pa.int64())))])
    schema = pa.schema([("[0].a b", pa.string()), (".v", nested)])
    value = {"x": [[("one", 1)], None]}

    rows = shown(RowEncoder(schema, envelope=Debezium("[0].a b")), chunk(schema, [(1, "k", value)]))

    assert rows == [(1, "insert", "k", None, value)]


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.struct([("x", pa.int64())]),
                                   pa.map_(pa.string(), pa.int64())], ids=str)  # fmt: skip
def test_a_nested_key_is_refused(type_: pa.DataType) -> None:
    schema = pa.schema([("k", type_), ("v", pa.int64())])

    with pytest.raises(RefusedOperation, match='column "k" cannot be a key'):
        RowEncoder(schema, envelope=Upsert("k"))


def test_wrong_keys_are_refused() -> None:
    schema = pa.schema([(name, pa.int64()) for name in ("amount", "Twin", "twin", "v")])

    def refused(envelope: Any) -> str:
        with pytest.raises(RefusedOperation) as told:
            RowEncoder(schema, envelope=envelope() if callable(envelope) else envelope)
        return str(told.value)

    said = refused(Upsert("amuont"))
    assert said.startswith('column "amuont" does not exist') and 'did you mean "amount"?' in said
    assert "the columns are: amount, Twin" in refused(Upsert("zzz"))
    assert refused(Upsert("v + 1")).startswith('invalid key: "v + 1" is not a column')
    assert refused(lambda: Upsert("v", "v")).startswith('column "v" is in the key more than once')
    assert refused(lambda: Debezium("v", "v")).startswith('column "v" is in the key more than')
    assert refused(Upsert("v", "V")).startswith('column "v" is in the key more than once')
    assert refused(lambda: Upsert()).startswith("the key of an envelope has no column")
    assert refused(lambda: Upsert([])).startswith("the key of an envelope has no column")
    assert refused(Upsert("TWIN")).startswith('column "TWIN" is ambiguous')
    assert RowEncoder(schema, envelope=Upsert("twin")).schema.names[2] == "twin"


KEYED = pa.schema([("k", pa.float64()), ("v", pa.int64())])
KEYS = st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, -math.inf])
DIFFS = st.sampled_from([-2, -1, -1, -1, 1, 1, 1, 2])


def oracle(rows: list[tuple[int, Any, int]]) -> tuple[list[Any], list[Any]]:
    """What both envelopes make of rows, the straight way."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for diff, k, v in rows:
        groups["NaN" if k is not None and math.isnan(k) else k].append((diff, v))
    rank = {"NaN": (1, 0.0), None: (2, 0.0)}
    upsert, debezium = [], []
    for key in sorted(groups, key=lambda k: rank.get(k) or (0, k)):
        group = sorted(groups[key])
        diffs, values = [diff for diff, _ in group], [value for _, value in group]
        case = {(1,): "insert", (-1,): "delete", (-1, 1): "upsert"}.get(tuple(diffs), "violation")
        before = values[0] if case in ("delete", "upsert") else None
        after = values[-1] if case in ("insert", "upsert") else None
        state = "key_violation" if case == "violation" else case
        upsert.append(("upsert" if case == "insert" else state, key, after))
        debezium.append((state, key, before, after))
    return upsert, debezium


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(
    rows=st.lists(
        st.tuples(DIFFS, KEYS, st.integers(0, 3)),
        max_size=12,
        unique_by=lambda row: (str(row[1]), row[2]),
    ),
    size=st.sampled_from([1, 2, 1000]),
)
def test_output_is_that_of_the_oracle_however_rows_are_cut(rows: list[Any], size: int) -> None:
    for envelope, expected in zip((Upsert("k"), Debezium("k")), oracle(rows), strict=True):
        shape = RowEncoder(KEYED, envelope=envelope, batch_rows=size)
        table = chunk(KEYED, rows)
        ordered = table.take(sort_indices(table, shape.ordering))
        cuts = [[ordered.slice(0, at), ordered.slice(at)] for at in range(len(rows) + 1)]
        single = [ordered.slice(at, 1) for at in range(len(rows))]
        for chunks in ([table], *cuts, single):
            batches = list(shape.rows(1, chunks))
            assert [len(batch) for batch in batches] == _sizes(len(expected), size)
            assert [_named(row) for b in batches for row in tuples(b)] == expected


def _sizes(rows: int, size: int) -> list[int]:
    return [min(size, rows - start) for start in range(0, rows, size)]


def _named(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, state, key, *values = row
    return (state, "NaN" if key is not None and math.isnan(key) else key, *values)


def test_a_key_of_many_rows_is_carried_over_every_border() -> None:
    rows = [(-1, 1, f"{n}") for n in range(5)] + [(1, 1, f"{n}") for n in range(5, 10)]
    chunks = [chunk(KV, [row]) for row in [*rows, (1, 2, "x")]]

    assert shown(RowEncoder(KV, envelope=Upsert("k")), *chunks) == [
        (1, "key_violation", 1, None),
        (1, "upsert", 2, "x"),
    ]
