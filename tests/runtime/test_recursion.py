"""WITH RECURSIVE on Spark: how deep it goes, where it is stopped, and a change on a circle."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.errors import FailedQuery
from dagster_streamtables.runtime.model.refresh_report import Action
from runtime.delta import held, run_on_delta, session, stored, views, write
from runtime.refreshes import maintained, refreshed
from runtime.ways import no_orders

pytestmark = [pytest.mark.long, no_orders]

BELOW = """
WITH RECURSIVE below(id) AS (
  SELECT id FROM edges WHERE parent IS NULL
  UNION ALL
  SELECT e.id FROM below AS b JOIN edges AS e ON e.parent = b.id
)
SELECT id FROM below
"""
DOUBLED = BELOW.replace("e.parent = b.id", "e.parent > 0")
COUNTED = """
WITH RECURSIVE counted(n) AS (
  SELECT id FROM edges WHERE parent IS NULL
  UNION
  SELECT n + 1 FROM counted
)
SELECT n FROM counted
"""


def edges(lake: Lake, *pairs: tuple[int, int | None]) -> None:
    ids, parents = zip(*pairs, strict=True)
    rows = {"id": pa.array(ids, pa.int32()), "parent": pa.array(parents, pa.int32())}
    write(lake, "edges", pa.table(rows))


def chain(length: int) -> list[tuple[int, int | None]]:
    return [(1, None), *((n, n - 1) for n in range(2, length + 1))]


@pytest.mark.falls_back
def test_a_row_moves_below_its_own_descendants(lake: Lake) -> None:
    """No path leads to rows 2 and 3 any more, and each still has the other for a reason."""
    table = maintained("below", BELOW, max_recursion_levels=9)
    edges(lake, *chain(3))
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE edges SET parent = 3 WHERE id = 2")
    refreshed(lake, table)
    assert stored(lake, "below", ["id"]) == {("1",): 1}


def test_a_row_moves_to_a_parent_from_where_it_is_reached_again(lake: Lake) -> None:
    table = maintained("below", BELOW)
    edges(lake, *chain(3), (4, 1), (5, 3))
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE edges SET parent = 4 WHERE id = 3")
    assert refreshed(lake, table).action is not Action.FULL


@pytest.mark.parametrize(
    ("mode", "query", "bound", "said"),
    [
        ("FULL", BELOW, {"max_recursion_levels": 5}, "after 5 levels"),
        ("AUTO", DOUBLED, {"max_recursion_rows": 50}, "50 rows"),
        ("DIFFERENTIAL", COUNTED, {"max_recursion_levels": 5}, "after 5 levels"),
    ],
    ids=["a circle", "rows that double", "a number that grows"],
)  # fmt: skip
def test_a_recursion_that_does_not_end_is_stopped(
    mode: str, query: str, bound: dict[str, int], said: str, lake: Lake
) -> None:
    table = maintained("below", query, mode=mode, max_consecutive_errors=2, **bound)  # fmt: skip
    edges(lake, (0, 0))
    lake.refresh(table)
    assert not held(lake, "below").rows
    run_on_delta(lake, "INSERT INTO edges VALUES (1, NULL), (1, 1), (2, 1)")

    for _ in range(2):
        with pytest.raises(FailedQuery) as raised:
            lake.refresh(table)
        assert "the recursion" in raised.value.what and said in raised.value.what
        assert "MAX RECURSION" not in str(raised.value)
    assert not held(lake, "below").rows
    assert lake.version("below") == 0
    assert lake.controls.read("below").suspension


def test_a_recursion_that_ends_below_spark_s_own_limit_of_100_levels(lake: Lake) -> None:
    """In full, differentially, and in the check; the session is handed in and keeps its limit."""
    table = maintained("below", BELOW)
    edges(lake, *chain(110))
    refreshed(lake, table)
    run_on_delta(lake, "DELETE FROM edges WHERE id = 109")
    lake.refresh(table)
    assert stored(lake, "below", ["id"]) == {(str(n),): 1 for n in range(1, 109)}
    assert session(lake).conf.get("spark.sql.cteRecursionLevelLimit") == "100"


def test_a_recursion_in_each_round_of_another_goes_as_deep(lake: Lake) -> None:
    query = """
    WITH RECURSIVE found(n) AS (
      SELECT id FROM edges WHERE parent IS NULL
      UNION ALL
      SELECT k + 1000 FROM (
        WITH RECURSIVE counted(k) AS (
          SELECT n + 1 FROM found WHERE n < 1000 UNION ALL SELECT k + 1 FROM counted WHERE k < 130
        )
        SELECT k FROM counted
      ) WHERE k = 130
    )
    SELECT n FROM found
    """
    table = maintained("found", query)
    edges(lake, (1, None), (2, 1))
    refreshed(lake, table)
    run_on_delta(lake, "INSERT INTO edges VALUES (120, NULL)")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    assert stored(lake, "found", ["n"]) == {("1",): 1, ("120",): 1, ("1130",): 2}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("operator", ["UNION ALL", "UNION"])
def test_a_chain_of_a_thousand_levels(operator: str, lake: Lake) -> None:
    table = maintained("below", BELOW.replace("UNION ALL", operator))
    edges(lake, *chain(1000))
    lake.refresh(table)
    run_on_delta(lake, "DELETE FROM edges WHERE id = 990")
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    assert stored(lake, "below", ["id"]) == {(str(n),): 1 for n in range(1, 990)}


def test_a_recursion_has_levels_of_its_own(lake: Lake) -> None:
    """More than its setting allows, and no more than Spark counts: the base is a level, too."""
    query = BELOW.replace("below(id) AS", "below(id) max recursion level 7 AS")
    table = maintained("below", query, max_recursion_levels=2)
    edges(lake, *chain(5))
    refreshed(lake, table)
    run_on_delta(lake, "INSERT INTO edges VALUES (6, 5), (7, 6)")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    run_on_delta(lake, "INSERT INTO edges VALUES (8, 7)")
    with pytest.raises(Exception, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        views(lake, "edges").sql(query).collect()
    with pytest.raises(FailedQuery, match="has not ended after 6 levels") as raised:
        lake.refresh(StreamTable("again", query))
    assert "raise its MAX RECURSION LEVEL if it does end" in str(raised.value)


def test_a_limit_ends_a_recursion_that_would_not_end(lake: Lake) -> None:
    """Spark stops where it has enough; mode FULL takes what Spark takes."""
    query = DOUBLED + " LIMIT 5"
    table = StreamTable("below", query, mode="FULL", max_recursion_levels=6)
    edges(lake, (1, None), (2, 1))
    lake.refresh(table)
    assert held(lake, "below").rows.total() == 5
