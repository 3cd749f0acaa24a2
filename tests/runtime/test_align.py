"""D reads B and C, which both read A: it never shows a state that A never had."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, StreamTable
from runtime.delta import stored, write
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import no_orders

pytestmark = [pytest.mark.long, no_orders]

SUMS = maintained("sums", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
COUNTS = maintained("counts", "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
BOTH = maintained(
    "means",
    "SELECT s.customer, s.total / c.n AS mean FROM sums AS s JOIN counts AS c USING (customer)",
)
BESIDE = maintained(
    "beside", "SELECT o.id, s.total FROM orders AS o JOIN sums AS s ON s.customer = o.customer"
)


@pytest.fixture
def lake(lake: Lake) -> Lake:
    order(lake, 1, 10)
    return lake


def order(lake: Lake, id_: int, amount: int) -> None:
    write(lake, "orders", pa.table({"id": [id_], "customer": [1], "amount": [amount]}))


def test_a_diamond_waits_for_the_side_that_is_behind(lake: Lake) -> None:
    each_refreshed(lake, SUMS, COUNTS, BOTH)
    order(lake, 2, 30)
    refreshed(lake, SUMS)

    waiting = refreshed(lake, BOTH, Action.SKIP)

    assert waiting.reason == (
        '"counts" reflects version 0 of "orders", and "sums" version 1; waiting for "counts"'
    )
    assert stored(lake, BOTH.name, ["customer", "mean"]) == {("1", "10"): 1}
    refreshed(lake, COUNTS)
    assert refreshed(lake, BOTH).action is Action.DIFFERENTIAL
    assert stored(lake, BOTH.name, ["customer", "mean"]) == {("1", "20"): 1}


def test_a_side_that_is_ahead_is_read_where_it_agreed(lake: Lake) -> None:
    each_refreshed(lake, SUMS, COUNTS, BOTH)
    order(lake, 2, 30)
    each_refreshed(lake, SUMS, COUNTS)
    order(lake, 3, 80)
    refreshed(lake, SUMS)

    done = refreshed(lake, BOTH, Action.DIFFERENTIAL)

    assert done.reason.endswith('waiting for "counts"')
    assert stored(lake, BOTH.name, ["customer", "mean"]) == {("1", "20"): 1}


def test_a_source_beside_a_table_over_it_is_read_at_that_tables_version(lake: Lake) -> None:
    refreshed(lake, SUMS)
    order(lake, 2, 30)

    first = refreshed(lake, BESIDE)
    refreshed(lake, SUMS)
    then = refreshed(lake, BESIDE)

    assert first.windows["orders"].after == 0
    assert then.windows["orders"].after == 1
    assert stored(lake, BESIDE.name, ["id", "total"]) == {("1", "40"): 1, ("2", "40"): 1}


def test_the_first_refresh_waits_too(lake: Lake) -> None:
    refreshed(lake, COUNTS)
    order(lake, 2, 30)
    refreshed(lake, SUMS)

    waiting = lake.refresh(BOTH)

    assert (waiting.action, waiting.version) == (Action.SKIP, -1)
    assert lake.version(BOTH.name) is None
    refreshed(lake, COUNTS)
    assert refreshed(lake, BOTH).row_count == 1


def test_versions_without_a_change_of_rows_agree(lake: Lake) -> None:
    each_refreshed(lake, SUMS, COUNTS, BOTH)
    order(lake, 2, 30)
    refreshed(lake, SUMS)
    DeltaTable(lake.location("orders")).optimize.compact()
    refreshed(lake, COUNTS)

    done = refreshed(lake, BOTH, Action.DIFFERENTIAL)

    assert "waiting" not in done.reason


def test_ways_of_different_length_meet(lake: Lake) -> None:
    """Four levels: the conflict is two tables below the one that waits."""
    above = StreamTable("above", "SELECT customer, total * 2 AS twice FROM sums")
    top = StreamTable(
        "top", "SELECT a.twice, c.n FROM above AS a JOIN counts AS c USING (customer)"
    )
    each_refreshed(lake, SUMS, COUNTS, above, top)
    order(lake, 2, 30)
    each_refreshed(lake, SUMS, above)

    assert refreshed(lake, top).action is Action.SKIP
    each_refreshed(lake, COUNTS, top)
    assert stored(lake, "top", ["twice", "n"]) == {("80", "2"): 1}
