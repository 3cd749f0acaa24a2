"""What differs from its query in a stored table: written by a full refresh, or found by a change.

The rows are of every kind; and the state of a table may say that they are what its query gave.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.runtime.model.table_state import read_state
from dagster_streamtables.runtime.storage import delta_rs_writer
from dagster_streamtables.runtime.storage.commit_target import CommitTarget
from runtime.delta import log_of, run_on_delta, write
from runtime.refreshes import maintained, refreshed
from runtime.ways import no_orders

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

    refreshed(lake, table, Action.FULL, full=True, inserted=0, deleted=0)

    # One copy of two is gone, a NULL becomes a value, -0.0 comes again, a key is new, one is gone.
    changed = [*_ROWS[1:5], (2, 1.5, "c"), (1, -0.0, "a"), *_ROWS[7:], (40, 1.0, "b")]
    write(lake, "t", _table(*changed), mode="overwrite")
    refreshed(lake, table, Action.FULL, full=True, inserted=3, deleted=3)

    write(lake, "t", _table(*[(i, 0.5, "z") for i in range(50)]), mode="overwrite")
    refreshed(lake, table, full=True, inserted=50, deleted=0)


LARGE = maintained("large", "SELECT id, amount FROM orders WHERE amount > 10")


@pytest.mark.long
@pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["delta-rs", "spark"])
@no_orders
def test_a_row_that_cannot_be_taken_away_starts_the_table_anew(lake: Lake) -> None:
    """As the last digits of a float do that was summed in another order."""
    write(lake, "orders", pa.table({"id": [1, 2], "amount": [20.0, 30.0]}))
    refreshed(lake, LARGE)
    _store(lake, pa.table({"id": [1, 2], "amount": [20.000000000000004, 30.0]}))
    run_on_delta(lake, "DELETE FROM orders WHERE id = 1")

    lost = "a deleted row is not in the table"
    refreshed(lake, LARGE, Action.REINITIALIZE, reason=lost, row_count=1)


def _store(lake: Lake, rows: pa.Table) -> None:
    """Put other rows under the state of the last refresh."""
    log = log_of(lake, LARGE.name)
    state = read_state(log).state
    assert state is not None
    delta_rs_writer.replace(log, CommitTarget(lake.location(LARGE.name), state, None), rows)
