"""What a report shows of a change: some of its rows, and how many time alone has made."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagster_streamtables.amounts import count
from dagster_streamtables.compiler import WEIGHT, Plan
from dagster_streamtables.runtime.delta.arrow import python_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import visible_names

if TYPE_CHECKING:
    import pyarrow as pa

_CAME, _WENT = "__came", "__went"


def by_time(plan: Plan, log: TableLog, change: pa.Table | None) -> str:
    """The end of a refresh's reason, for a query that returns the time.

    Args:
        plan: The plan of the query.
        log: The table before.
        change: The change of the table; None if it is in Spark.
    """
    columns = ", ".join(f'"{each}"' for each in plan.time_columns)
    pairs = None
    if change is not None and plan.key is None:
        pairs = _pairs(change, plan.time_columns)
    if pairs is not None:
        rows = f"{count(pairs, 'row')} more"
    else:
        rows = "all rows" if log.row_count is None else f"up to {count(log.row_count, 'row')}"
    return f"the time in {columns} changed {rows}"


def _pairs(change: pa.Table, timed: tuple[str, ...]) -> int | None:
    """The rows of a bag that come and go with no other difference than the time; None if Arrow
    cannot compare them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if any(pa.types.is_nested(each) for each in change.schema.types):
        return None
    weight = change.column(WEIGHT)
    zero = pa.scalar(0, weight.type)
    others = [name for name in change.column_names if name not in (*timed, WEIGHT)]
    rows = change.select(others)
    rows = rows.append_column(_CAME, pc.max_element_wise(weight, zero))
    rows = rows.append_column(_WENT, pc.max_element_wise(pc.negate(weight), zero))
    sums = rows.group_by(others).aggregate([(_CAME, "sum"), (_WENT, "sum")])
    came, went = sums.column(f"{_CAME}_sum"), sums.column(f"{_WENT}_sum")
    return pc.sum(pc.min_element_wise(came, went)).as_py() or 0


CHANGE, COPIES = "__change", "__copies"


def preview_of(change: pa.Table | None, limit: int) -> list[dict[str, Any]]:
    """Up to `limit` rows of a change, with ``__change`` (``came`` or ``went``) and ``__copies``.

    In a table with a key, a row that came replaces the one with its key.

    Args:
        change: Stored rows and their weights; None if Spark has them, then nothing is shown.
        limit: 0 shows nothing, so that no data leaves the table unless requested.
    """
    if change is None or not limit:
        return []
    few = change.slice(0, limit)
    weights, rows = few.column(WEIGHT).to_pylist(), few.drop_columns([WEIGHT])
    shown = rows.select(visible_names(rows.column_names))
    return [
        {CHANGE: "came" if weight > 0 else "went", COPIES: abs(weight), **row}
        for row, weight in zip(python_rows(shown), weights, strict=True)
    ]
