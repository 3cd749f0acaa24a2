"""Some rows of a change, shown in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.delta.arrow import python_rows
from dagster_streamtables.runtime.model.definition import visible_names

if TYPE_CHECKING:
    import pyarrow as pa

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
