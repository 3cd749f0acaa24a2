"""Which rows the filters of a rule choose, decided by Spark."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.replication.lake.shown_table import ShownTable
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.compute.netting import netted
from dagster_streamtables.runtime.errors.translate import explained
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa

_SESSION = "_replications"
_ROW = "__published_row"


def flag(number: int) -> str:
    """The column that says whether a filter chooses the row, by its number in the rule."""
    return f"__published_{number}"


def flags(filters: Sequence[str]) -> list[str]:
    """Filters as columns of a SELECT. One that is NULL does not choose the row."""
    return [f"COALESCE((\n{where}\n), FALSE) AS {flag(i)}" for i, where in enumerate(filters)]


def with_flags(access: Access, shown: ShownTable, parts: Sequence[pa.Table]) -> list[pa.Table]:
    """The changes of some commits with the flags of their rows, by one statement for all of them.

    Args:
        access: The Spark session.
        shown: The table.
        parts: The columns that are read, those that filters look at, and the weight.

    Returns:
        The columns that are read, the flags and the weight; a row that only changed where nobody
        sees it is gone.
    """
    import pyarrow as pa

    filters, columns = shown.rule.all_filters, [*shown.read, WEIGHT]
    rows = pa.concat_tables(parts)
    found = _decided(access, rows.select(list(shown.looked_at)), rows.num_rows, filters)
    chosen = rows.select(columns)
    for i, values in enumerate(found):
        chosen = chosen.append_column(flag(i), values)
    cut, start = [], 0
    for part in parts:
        cut.append(netted(chosen.slice(start, part.num_rows)))
        start += part.num_rows
    return cut


def _decided(
    access: Access, rows: pa.Table, count: int, filters: Sequence[str]
) -> list[pa.ChunkedArray]:
    """Each filter's answer for each row."""
    import pyarrow as pa

    # A filter may look at no column, and a table without columns has no rows.
    numbered = pa.table({_ROW: pa.array(range(count), pa.int64())})
    for name in rows.column_names:
        numbered = numbered.append_column(name, rows.column(name))
    inputs = Inputs(session=lambda: access.session(_SESSION, "UTC"), stored=lambda _: None)
    with explained(), closing(inputs):
        handed = inputs.relations.handed(numbered)
        answers = arrow_rows(handed.selectExpr(_ROW, *flags(filters)))
    answers = answers.sort_by(_ROW)
    return [answers.column(flag(i)) for i in range(len(filters))]
