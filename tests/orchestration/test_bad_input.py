"""Definitions that cannot be: what is known when a code location is loaded, and that it loads."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from dagster_streamtables import StreamTablesResource, build_definitions
from dagster_streamtables.declarations import declare, find_problems
from dagster_streamtables.declare.sql_files import Declared
from dagster_streamtables.errors import InvalidDefinition, SourceProblem
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.model.stream_table import StreamTable
from orchestration.conftest import Write

GOOD = StreamTable("good", "SELECT id FROM orders", schedule="5m")


@pytest.fixture(autouse=True)
def orders(write: Write) -> None:
    write("orders", id=[1, 2], amount=[10, 20])


BROKEN: dict[str, tuple[Sequence[Declared], str]] = {
    "text": ([StreamTable("bad", "SELEC id FROM orders")], "SELEC does not begin a query"),
    "column": ([StreamTable("bad", "SELECT price FROM orders")], "price"),
    "mode": ([declare("bad", "SELECT id FROM orders", mode="quick")], 'no mode "quick"'),
    "schedule": ([StreamTable("bad", "SELECT id FROM orders", schedule="5 m")], "not a schedule"),
    "tight": ([StreamTable("bad", "SELECT id FROM orders", schedule="5s")], "too tight"),
    "zone": (
        [StreamTable("bad", "SELECT id FROM orders", schedule="@daily", timezone="Moon")],
        'no time zone "Moon"',
    ),
    "names": (
        [StreamTable("bad", "SELECT id FROM orders"), StreamTable("bad", "SELECT 1 AS one")],
        "2 stream tables have this name",
    ),
    "cycle": (
        [StreamTable("bad", "SELECT id FROM worse"), StreamTable("worse", "SELECT id FROM bad")],
        "in a cycle",
    ),
    "itself": ([StreamTable("bad", "SELECT id FROM bad")], "in a cycle"),
    "query": ([StreamTable("bad", "SELECT id, rand() AS r FROM orders")], "rand"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_definition_is_an_asset_that_says_so(
    case: str, logs: StreamTablesResource, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    tables, what = BROKEN[case]
    with caplog.at_level(logging.WARNING, "dagster_streamtables"):
        defs = build_definitions(resource=logs, tables=[*tables, GOOD])
    dg.Definitions.validate_loadable(defs)

    spec = {s.key: s for s in defs.resolve_all_asset_specs()}[dg.AssetKey("bad")]
    assert spec.description is not None
    assert what in spec.description.split("\n\n")[0]
    assert any(what in record.getMessage() for record in caplog.records)

    instance = dg.DagsterInstance.ephemeral()
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.get_subset(asset_selection={dg.AssetKey("bad")}).execute_in_process(
        instance=instance, raise_on_error=False
    )
    [failure] = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert what in str(data.metadata["streamtables/what"].value)
    assert not (tmp_path / "public" / "bad").exists()


@pytest.mark.parametrize("case", BROKEN)
def test_strict_raises_instead(case: str, logs: StreamTablesResource) -> None:
    tables, what = BROKEN[case]
    with pytest.raises(InvalidDefinition, match=what):
        build_definitions(resource=logs, tables=[GOOD, *tables], strict=True)


def test_strict_raises_all_at_once(logs: StreamTablesResource) -> None:
    tables = {name: StreamTable(name, f"SELECT {name} FROM") for name in ("one", "two", "three")}
    with pytest.raises(InvalidDefinition, match="3 stream tables are broken") as raised:
        build_definitions(resource=logs, tables=[GOOD, *tables.values()], strict=True)
    assert all(f'stream table "{name}"' in raised.value.why for name in tables)


@pytest.mark.parametrize("case", BROKEN)
def test_problems_are_a_list(case: str, logs: StreamTablesResource) -> None:
    tables, what = BROKEN[case]
    problems = find_problems([*tables, GOOD], logs.lake())
    assert {problem.table for problem in problems} == {table.name for table in tables}
    assert all(problem.fatal and what in problem.error.what for problem in problems)
    assert find_problems([GOOD], logs.lake()) == []


def test_a_table_that_does_not_exist_may_come_and_is_said(
    logs: StreamTablesResource, caplog: pytest.LogCaptureFixture
) -> None:
    table = StreamTable("early", "SELECT id FROM ordres")
    with caplog.at_level(logging.WARNING, "dagster_streamtables"):
        defs = build_definitions(resource=logs, tables=[table])
    assert "ordres" in str(caplog.messages)
    spec = {s.key: s for s in defs.resolve_all_asset_specs()}[dg.AssetKey("early")]
    assert 'there is no table "ordres"' in (spec.description or "")
    [problem] = find_problems([table], logs.lake())
    assert isinstance(problem.error, SourceProblem)
    assert not problem.fatal


def test_a_source_that_is_no_delta_table_is_said(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    (tmp_path / "public" / "files").mkdir()
    [problem] = find_problems([StreamTable("t", "SELECT a FROM files")], logs.lake())
    assert "not a Delta table" in problem.error.what


def test_a_table_above_a_broken_one_keeps_working(logs: StreamTablesResource) -> None:
    above = StreamTable("above", "SELECT id FROM bad", schedule="5m")
    broken = StreamTable("bad", "SELEC id FROM orders")
    defs = build_definitions(resource=logs, tables=[above, broken])
    specs = {s.key: s for s in defs.resolve_all_asset_specs()}
    assert metadata.PROBLEM not in specs[dg.AssetKey("above")].metadata
    assert [dep.asset_key for dep in specs[dg.AssetKey("above")].deps] == [dg.AssetKey("bad")]


def test_a_name_that_another_asset_has_is_left_to_it(
    logs: StreamTablesResource, caplog: pytest.LogCaptureFixture
) -> None:
    @dg.asset
    def good() -> None: ...

    with caplog.at_level(logging.WARNING, "dagster_streamtables"):
        defs = build_definitions(resource=logs, tables=[GOOD], assets=[good])
    assert "another asset" in str(caplog.messages)
    assert defs.resolve_asset_graph().get_all_asset_keys() == {dg.AssetKey("good")}
    with pytest.raises(InvalidDefinition, match="another asset"):
        build_definitions(resource=logs, tables=[GOOD], assets=[good], strict=True)


def test_what_needs_no_columns_is_told_before_the_sources_exist(logs: StreamTablesResource) -> None:
    later = StreamTable("later", "SELECT id FROM to_come")
    wrong = StreamTable("wrong", "SELECT id, uuid() AS u FROM to_come")
    piped = StreamTable("piped", "FROM to_come |> WHERE id > 1")
    whole = StreamTable("whole", "SELECT id, uuid() AS u FROM to_come", "AUTO")
    found = {each.table: each for each in find_problems([later, wrong, piped, whole], logs.lake())}
    assert found["wrong"].error.what.endswith("uuid() cannot be maintained")
    assert "line 1, column 12" in found["wrong"].error.where
    assert all(
        "there is no table" in found[name].error.what for name in ("later", "piped", "whole")
    )
