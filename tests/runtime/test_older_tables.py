"""A lake that an older version filled, which stored columns of t.* under the names of others.

`older_lake` has three stream tables with two refreshes each: one whose values stand under wrong
names, one that missed a change of a join by names after a FULL JOIN, and one that is right.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.declare.analysis import analyze_tables
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions
from dagster_streamtables.scheduling.refresh_states import RefreshProgress, Versions, refresh_states
from named_rows import NamedRows
from runtime.delta import views

SWAPPED = StreamTable(
    "swapped", "SELECT s.*, c.country FROM sales s LEFT JOIN customers c USING (customer_id)"
)
MISSED = StreamTable(
    "outer_joined",
    "SELECT k, a.v AS av, b.v AS bv, d.v AS dv FROM a FULL JOIN b USING (k) LEFT JOIN d USING (k)",
)
SOUND = StreamTable(
    "sound", "SELECT customer_id, SUM(amount) AS total FROM sales GROUP BY customer_id"
)
TABLES = (SWAPPED, MISSED, SOUND)


@pytest.fixture
def older(spark: SparkSession, tmp_path: Path) -> Lake:
    shutil.copytree(Path(__file__).parent / "older_lake", tmp_path, dirs_exist_ok=True)
    return Lake(tmp_path, spark=spark)


def test_what_an_older_version_stored_wrongly_is_rebuilt_and_said(older: Lake) -> None:
    assert stored(older, "swapped")[:2] == ["sale_id", "customer_id"]
    done = {table.name: older.refresh(table) for table in TABLES}
    assert {name: each.action for name, each in done.items()} == {
        "swapped": Action.REINITIALIZE,
        "outer_joined": Action.REINITIALIZE,
        "sound": Action.NO_DATA,
    }
    assert "under the wrong names" in done["swapped"].reason
    assert "sale_id, customer_id, amount, country" in done["swapped"].reason
    assert "RIGHT and FULL joins by names" in done["outer_joined"].reason
    for table in TABLES:
        expected = views(older, "a", "b", "d", "sales", "customers").sql(table.query)
        assert stored(older, table.name) == expected.columns, "the files have Spark's order"
        assert NamedRows.of_spark(older.read(table.name)) == NamedRows.of_spark(expected)
        assert older.check(table).equal
    assert [older.refresh(table).action for table in TABLES] == [Action.NO_DATA] * 3


@pytest.mark.smoke("a table that an older version wrote")
def test_a_table_of_an_older_version_is_due_until_it_was_compared(older: Lake) -> None:
    assert due(older) == {"swapped", "outer_joined", "sound"}
    before = older.version("sound")
    older.refresh(SOUND)
    assert older.version("sound") == (before or 0) + 1, "the commit says that it was compared"
    assert due(older) == {"swapped", "outer_joined"}
    older.refresh_all(TABLES)
    assert due(older) == set()


def due(lake: Lake) -> set[str]:
    """The tables with work to do, for a driver that remembers a refresh of each at this moment."""
    now = datetime.now(UTC)
    known = {each.name: RefreshProgress(last=now) for each in TABLES}
    examined = {each.name: each for each in analyze_tables(TABLES)}
    heads = Versions(LatestVersions(lake.location))
    found = refresh_states(examined, known, heads, {}, OtherDefinitions(), now, {})
    return {name for name, each in found.items() if each.work}


def stored(lake: Lake, name: str) -> list[str]:
    fields = DeltaTable(lake.location(name)).schema().fields
    return [field.name for field in fields if not field.name.startswith("__st_")]
