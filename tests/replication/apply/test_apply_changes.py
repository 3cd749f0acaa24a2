"""Changes applied to real tables, against a model that applies one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from changes.table import FEED
from dagster_streamtables.errors import ReplicationConflict
from dagster_streamtables.replication.apply.apply_changes import Choices, apply_changes
from dagster_streamtables.replication.model.replication_model import PublishedTable
from replication.apply.published import (
    KEYED,
    WHOLE,
    Change,
    Model,
    Transactions,
    Values,
    at,
    changes,
    counted,
    position_of,
    stored,
)


def row(id: Any, name: Any) -> dict[str, Any]:
    return {"id": id, "name": name}


def insert(id: Any, name: Any) -> Change:
    return "insert", row(id, name)


def update(id: Any, name: Any, *hidden: str, of: Values | None = None) -> Change:
    return "update", of, row(id, name), *hidden


def delete(old: Values) -> Change:
    return "delete", old


A, B, C = row(1, "a"), row(2, "b"), row(3, "c")
KEYED_HISTORIES: dict[str, Transactions] = {
    "each operation": {5: [insert(4, "d"), update(2, "B"), delete(A)]},
    "two keys swapped": {
        5: [update(9, "a", of=A), update(1, "b", of=B), update(2, "a", of=row(9, ""))]},
    "a chain of keys": {5: [update(4, "c", of=C), update(3, "b", of=B), update(2, "a", of=A)]},
    "inserted, deleted, inserted": {5: [insert(7, "x"), delete(row(7, "")), insert(7, "y")]},
    "deleted, inserted, deleted": {5: [delete(A), insert(1, "x"), delete(A)]},
    "inserted and deleted": {5: [insert(7, "x"), delete(row(7, ""))]},
    "a new row in the place of a deleted one": {5: [delete(A), insert(1, "x")]},
    "truncated": {5: [insert(7, "x"), ("truncate",)]},
    "rows after a truncation": {
        5: [("truncate",), insert(1, "a"), update(1, "x")], 6: [insert(2, "b")]},
    "updates and deletes after a truncation": {5: [("truncate",), update(2, "x"), delete(A)]},
    "truncated twice": {
        5: [("truncate",)], 6: [insert(1, "a"), ("truncate",)], 7: [insert(2, "b")]},
    "nothing is there": {5: [update(8, "x"), delete(row(9, ""))]},
    "a value that is not told": {5: [update(1, None, "name")]},
    "not told after a change of the key": {
        5: [update(8, None, "name", of=A), update(9, None, "name", of=row(8, ""))]},
    "not told after an insert": {5: [insert(7, "x"), update(7, None, "name")]},
    "told, then not told": {5: [update(1, "x"), update(1, "", "name")]},
    "NULLs": {5: [update(1, None), insert(7, None)]},
    "many transactions": {p: [update(1, str(p))] for p in range(5, 30)},
    "no changes": {5: []},
    "no transactions": {},
}  # fmt: skip
WHOLE_HISTORIES: dict[str, Transactions] = {
    "one of two equal rows": {5: [insert(1, "a"), insert(1, "a"), delete(A)]},
    "one of three equal rows that are there": {5: [delete(C)]},
    "updated one of three": {5: [update(3, "x", of=C)]},
    "updated to what another is": {5: [update(2, "b", of=A), delete(B)]},
    "NULLs": {5: [insert(None, None), insert(None, None)],
              6: [delete(row(None, None)), update(None, "c", of=C)]},
    "a value that is not told": {5: [update(8, None, "name", of=A)]},
    "more are deleted than there are": {5: [delete(A), delete(A), update(2, "b", of=A)]},
    "truncated in the middle": {5: [delete(A), ("truncate",), insert(3, "c"), delete(B)]},
}  # fmt: skip


def check(
    place: Path,
    table: PublishedTable,
    rows: Sequence[Any],
    happened: Transactions,
    *,
    policy: Any = "error",
    by_commit: bool = False,
) -> None:
    end = max(happened, default=4) + 1
    model = Model(table, rows, policy)
    model.apply(happened)

    choices = Choices(policy, commit_by_commit=by_commit)
    done = apply_changes(at(place), changes(table, happened), end, choices)

    assert stored(place) == counted(model.rows)
    assert +done.conflicts == +model.conflicts
    assert (done.position, position_of(at(place))) == (end, end)
    version = DeltaTable(str(place)).version()
    again = apply_changes(at(place), changes(table, happened), end)
    assert (again.version, DeltaTable(str(place)).version()) == (None, version)


by_commit_or_not = pytest.mark.parametrize("by_commit", [False, True], ids=["net", "by commit"])


@pytest.mark.thorough
@by_commit_or_not
@pytest.mark.parametrize("happened", KEYED_HISTORIES.values(), ids=KEYED_HISTORIES)
def test_rows_with_a_key(happened: Transactions, by_commit: bool, tmp_path: Path) -> None:
    rows = [{**each, "own": f"own {each['id']}"} for each in (A, B, C)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows), configuration=FEED)

    check(tmp_path, KEYED, rows, happened, by_commit=by_commit)


@by_commit_or_not
@pytest.mark.parametrize("happened", WHOLE_HISTORIES.values(), ids=WHOLE_HISTORIES)
def test_rows_without_a_key(happened: Transactions, by_commit: bool, tmp_path: Path) -> None:
    rows = [A, B, C, C, C]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows), configuration=FEED)

    check(tmp_path, WHOLE, rows, happened, by_commit=by_commit)


def test_what_a_target_has_of_its_own_stays_with_its_row(tmp_path: Path) -> None:
    rows = [{**A, "own": "x"}, {**B, "own": "y"}, {**B, "own": "y"}]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows))

    happened = {5: [update(8, "z", of=A), delete(B), insert(3, "c")]}
    apply_changes(at(tmp_path), changes(WHOLE, happened), 5)

    rows = [{"id": 8, "name": "z", "own": "x"}, {**B, "own": "y"}, {**C, "own": None}]
    assert stored(tmp_path) == counted(rows)


def test_zeros_of_both_signs_are_one_key(tmp_path: Path) -> None:
    """As in PostgreSQL, whose key they would both violate; the value is that of the last change."""
    schema = pa.schema([("k", pa.float64()), ("v", pa.string())])
    table = PublishedTable("public.t", schema, ("k",))
    write_deltalake(tmp_path, pa.Table.from_pylist([{"k": 0.0, "v": "a"}], schema=schema))

    moved = {5: [("update", {"k": 0.0}, {"k": -0.0, "v": "b"})]}
    apply_changes(at(tmp_path), changes(table, moved), 5)
    assert stored(tmp_path) == counted([{"k": -0.0, "v": "b"}])

    with pytest.raises(ReplicationConflict, match="conflicts with a row") as error:
        again = {6: [("insert", {"k": 1.0, "v": ""})], 7: [("insert", {"k": 0.0, "v": "c"})]}
        apply_changes(at(tmp_path), changes(table, again), 7)
    assert "insert_exists, position 7" in error.value.where
    assert position_of(at(tmp_path)) == 5

    apply_changes(at(tmp_path), changes(table, {6: [("delete", {"k": 0.0})]}), 6)
    assert not stored(tmp_path)


def test_transactions_before_a_conflict_are_applied_if_each_is_a_commit(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist([A]))
    happened = changes(KEYED, {5: [insert(2, "b")], 6: [insert(1, "a")], 7: [insert(3, "c")]})

    with pytest.raises(ReplicationConflict, match="conflicts with a row"):
        apply_changes(at(tmp_path), happened, 7, Choices(commit_by_commit=True))
    assert (stored(tmp_path), position_of(at(tmp_path))) == (counted([A, B]), 5)

    apply_changes(at(tmp_path), happened, 7, Choices(commit_by_commit=True, skip={6}))
    assert (stored(tmp_path), position_of(at(tmp_path))) == (counted([A, B, C]), 7)
