"""A table that is computed in full again: what differs is written, whatever the rows are like."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Action, Lake, Mode, StreamTable
from runtime.delta import write
from runtime.refreshes import refreshed

pytestmark = pytest.mark.spark

_NAN = float("nan")
_ROWS: list[tuple[int | None, float | None, str | None]] = [
    (None, None, None),
    (None, None, None),
    (1, _NAN, "a"),
    (1, -0.0, "a"),
    (1, 0.0, "a"),
    (2, 1.5, None),
    *[(i, i / 2, "b") for i in range(10, 30)],
]
_BAG = StreamTable("mart.bag", "SELECT k, x, s FROM t", mode=Mode.FULL)
_GROUPS = StreamTable("mart.groups", "SELECT k, MAX(x) AS x, COUNT(*) AS n FROM t GROUP BY k")


def _table(*rows: tuple[int | None, float | None, str | None]) -> pa.Table:
    k, x, s = zip(*rows, strict=True)
    types = {"k": pa.int64(), "x": pa.float64(), "s": pa.string()}
    return pa.table(
        {
            name: pa.array(v, type_)
            for (name, type_), v in zip(types.items(), (k, x, s), strict=True)
        }
    )


@pytest.mark.parametrize(
    "table",
    [pytest.param(_BAG, id="bag", marks=pytest.mark.long), pytest.param(_GROUPS, id="groups")],
)
def test_only_what_differs_is_written(table: StreamTable, lake: Lake) -> None:
    write(lake, "t", _table(*_ROWS))
    lake.refresh(table, full=True)

    same = refreshed(lake, table, full=True)
    assert (same.action, same.inserted, same.deleted) == (Action.FULL, 0, 0)

    # One copy of two is gone, a NULL becomes a value, -0.0 comes again, a key is new, one is gone.
    changed = [*_ROWS[1:5], (2, 1.5, "c"), (1, -0.0, "a"), *_ROWS[7:], (40, 1.0, "b")]
    write(lake, "t", _table(*changed), mode="overwrite")
    done = refreshed(lake, table, full=True)
    assert done.action is Action.FULL
    expected = {"mart.bag": (3, 3), "mart.groups": (3, 3)}[table.name]
    assert (done.inserted, done.deleted) == expected

    write(lake, "t", _table(*[(i, 0.5, "z") for i in range(50)]), mode="overwrite")
    anew = refreshed(lake, table, full=True)
    assert (anew.inserted, anew.deleted) == (50, 0)
