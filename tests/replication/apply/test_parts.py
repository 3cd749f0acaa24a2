"""Parts of many changes are small: only what hangs together must be in one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables.replication.apply.in_parts import Parts
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target.target_columns import columns_of
from dagster_streamtables.replication.target.target_table import TargetTable, log_of
from replication.apply.published import Change, at, changes

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
ROWS = 400


def row(id_: int, v: str = "") -> dict[str, object]:
    return {"id": id_, "v": v}


def parts_of(place: Path, happened: list[Change], key: bool) -> list[set[int]]:
    """The identifiers before, of the changes of each part."""
    table = PublishedTable("public.t", SCHEMA, ("id",) if key else None)
    write_deltalake(place, pa.Table.from_pylist([row(i) for i in range(ROWS)], schema=SCHEMA))
    log = log_of(at(place))
    assert log is not None
    told = changes(table, {5: happened})
    columns = columns_of(log, table)
    parts = Parts.of(columns, told.rows, told.positions, stored=ROWS, at_once=50)
    mine = [
        {old["id"] for old in each["old"].to_pylist()} for each in parts.split_changes(told.rows)
    ]
    stored = parts.split_target(TargetTable(at(place), log))
    there = [set(each["id"].to_pylist()) for each in stored]
    assert all(one <= other for one, other in zip(mine, there, strict=True))
    assert sum(map(len, mine)) == len(happened)
    return mine


@pytest.mark.parametrize("key", [True, False], ids=["keys", "whole rows"])
def test_rows_that_move_are_in_many_parts(tmp_path: Path, key: bool) -> None:
    happened = [("update", row(i), row(-i - 1, "moved")) for i in range(ROWS)]
    found = parts_of(tmp_path, happened, key)
    assert len(found) > ROWS // 50 and max(map(len, found)) < 100


def test_what_hangs_together_is_in_one_part(tmp_path: Path) -> None:
    """Chains of ten, each told from its end, and a row that two others follow."""
    happened = [
        ("update", row(i), row(i + 1 if i % 10 != 9 else -i)) for i in reversed(range(ROWS))
    ]
    for each in parts_of(tmp_path / "chains", happened, key=True):
        assert {i - i % 10 + j for i in each for j in range(10)} == each
    star = [("update", row(i), row(0, "same")) for i in range(ROWS)]
    assert {0, ROWS} == {len(each) for each in parts_of(tmp_path / "star", star, key=False)}
