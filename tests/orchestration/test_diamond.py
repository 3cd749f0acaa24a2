"""All steps of a run reflect one state of the sources that the run does not write."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import dagster as dg
import pytest

from dagster_streamtables import StreamTablesResource, build_stream_table_assets
from dagster_streamtables.runtime.model.stream_table import StreamTable
from named_rows import rows_in_order
from orchestration.conftest import Write

TABLES = [
    StreamTable("sums", "SELECT SUM(amount) AS total FROM orders"),
    StreamTable("counts", "SELECT COUNT(DISTINCT o.id) AS n FROM orders AS o, noise"),
    StreamTable("both", "SELECT s.total, c.n FROM sums AS s, counts AS c"),
]


@pytest.mark.long
def test_rows_that_come_during_a_run_are_left_to_the_next(
    resource: StreamTablesResource, write: Write
) -> None:
    write("orders", id=[1], amount=[10])

    @dg.asset(deps=["sums"])
    def noise() -> None:
        """Writes what `counts` reads, and, where nobody looks, into `orders` too."""
        write("noise", id=[1])
        write("orders", id=[2], amount=[30])

    def run() -> list[tuple[object, ...]]:
        assets = [noise, *build_stream_table_assets(tables=TABLES)]
        done = dg.materialize(assets, resources={"streamtables": resource})
        assert done.success
        return rows_in_order(resource.lake().read("both"), "total, n")

    assert run() == [(10, 1)]
    assert run() == [(40, 2)]
