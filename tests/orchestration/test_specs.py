"""Stream tables as asset specs: keys, dependencies, policies and what is known before a refresh."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext,
    DefinitionsLoadType,
)
from dagster._core.definitions.repository_definition import RepositoryLoadData

from dagster_streamtables import (
    StreamTableProps,
    StreamTablesResource,
    StreamTablesTranslator,
    build_definitions,
    build_source_assets,
)
from dagster_streamtables.catalog import build_catalog
from dagster_streamtables.orchestration.catalog import asset_catalog, metadata
from dagster_streamtables.orchestration.catalog.asset_catalog import SHOWN
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from orchestration.conftest import Write, loading
from own_process import python

CLEAN = StreamTable("clean", "SELECT id, amount * 2 AS doubled FROM sales.orders")
TOTALS = StreamTable(
    "sales.totals", "SELECT count(*) AS n FROM clean", schedule="5m", description="All of it."
)


def key(path: str) -> dg.AssetKey:
    return dg.AssetKey(path.split("/"))


def test_keys_and_dependencies_come_from_the_names_in_the_query() -> None:
    catalog = build_catalog([TOTALS, CLEAN])
    assert [entry.key for entry in catalog.entries] == [key("clean"), key("sales/totals")]
    assert [[dep.asset_key for dep in entry.spec.deps] for entry in catalog.entries] == [
        [key("sales/orders")],
        [key("clean")],
    ]
    assert catalog.observed == {"sales.orders": key("sales/orders")}


def test_columns_lineage_and_plan_are_there_before_the_first_refresh(
    logs: StreamTablesResource, write: Write
) -> None:
    write("sales.orders", id=[1], amount=[10])
    clean, totals = build_catalog([TOTALS, CLEAN], lake=logs.logs()).entries
    schema = clean.spec.metadata[metadata.COLUMN_SCHEMA]
    assert [(column.name, column.type) for column in schema.columns] == [
        ("id", "bigint"),
        ("doubled", "bigint"),
    ]
    lineage = clean.spec.metadata[metadata.COLUMN_LINEAGE].deps_by_column
    assert lineage["doubled"] == [dg.TableColumnDep(key("sales/orders"), "amount")]
    # The table it reads does not exist yet; its columns are those of that table's plan.
    assert [c.name for c in totals.spec.metadata[metadata.COLUMN_SCHEMA].columns] == ["n"]
    assert "```" in totals.spec.metadata[metadata.PLAN].value
    assert "```sql\nSELECT count(*)" in (totals.spec.description or "")


def test_the_time_of_the_last_change_is_shown_as_a_column(
    logs: StreamTablesResource, write: Write
) -> None:
    write("sales.orders", id=[1], amount=[10])
    table = replace(CLEAN, changed_at="loaded_at")
    [entry] = build_catalog([table], lake=logs.logs()).entries
    *_, last = entry.spec.metadata[metadata.COLUMN_SCHEMA].columns
    about = "time of the row's last change"
    assert last == dg.TableColumn("loaded_at", "timestamp", description=about)


def test_the_schedule_is_shown_as_written_and_as_resolved() -> None:
    alone = StreamTable("alone", "SELECT id FROM sales.orders")
    specs = {entry.name: entry.spec for entry in build_catalog([TOTALS, CLEAN, alone]).entries}
    shown = {
        name: (spec.metadata[metadata.SCHEDULE], spec.metadata[metadata.RESOLVED_SCHEDULE])
        for name, spec in specs.items()
    }
    assert shown["sales.totals"] == ("5m", "5m")
    assert shown["clean"] == ("CALCULATED", "5m, from sales.totals")
    assert shown["alone"][1].startswith("on demand")
    assert specs["clean"].freshness_policy == specs["sales.totals"].freshness_policy is not None
    assert specs["alone"].freshness_policy is None


def test_the_code_version_is_the_query_and_nothing_else() -> None:
    def version(table: StreamTable) -> str | None:
        return build_catalog([table]).entries[0].spec.code_version

    assert version(CLEAN) == version(StreamTable("clean", CLEAN.query + "\n;\n", schedule="1h"))
    assert version(CLEAN) != version(StreamTable("clean", CLEAN.query + " WHERE id > 0"))


def test_a_query_that_cannot_be_maintained_is_shown_with_its_reason(
    logs: StreamTablesResource, write: Write
) -> None:
    write("sales.orders", id=[1], amount=[10])
    query = "SELECT id, rand() AS r FROM sales.orders"
    for mode in (Mode.AUTO, Mode.FULL):
        [entry] = build_catalog([StreamTable("t", query, mode)], lake=logs.logs()).entries
        assert entry.examined.error is None
        assert "rand" in entry.spec.metadata[metadata.RESOLVED_MODE]


def test_a_translator_changes_keys_and_dependencies_follow() -> None:
    class Prefixed(StreamTablesTranslator):
        def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
            spec = super().get_asset_spec(props)
            return spec.replace_attributes(key=spec.key.with_prefix("lake"), metadata={})

    clean, totals = build_catalog(
        [TOTALS, CLEAN],
        translator=Prefixed(),
        group_name="gold",
        source_keys={"sales.orders": key("raw/orders")},
    ).entries
    assert [dep.asset_key for dep in clean.spec.deps] == [key("raw/orders")]
    assert [dep.asset_key for dep in totals.spec.deps] == [key("lake/clean")]
    assert clean.spec.group_name == "gold"
    # What a refresh needs is there all the same.
    assert metadata.read_definition(clean.spec.metadata) == CLEAN


def test_owners_tags_and_group_reach_the_asset_and_a_translator_wins() -> None:
    class Mine(StreamTablesTranslator):
        def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
            spec = super().get_asset_spec(props)
            assert (props.schema, props.sources) == ("sales", ("clean",))
            return spec.merge_attributes(tags={"tier": "silver"}, owners=["a@example.com"])

    class Grouped(StreamTablesTranslator):
        def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
            return super().get_asset_spec(props).replace_attributes(group_name="theirs")

    labels: dict[str, Any] = {"owners": ("team:x",), "tags": {"tier": "gold", "pii": ""}}
    tables = [replace(TOTALS, group="money", **labels)]
    [plain] = build_catalog(tables, group_name="rest").entries
    assert (plain.spec.owners, plain.spec.group_name) == (["team:x"], "money")
    assert plain.spec.tags.items() >= labels["tags"].items()
    assert metadata.read_definition(plain.spec.metadata) == tables[0]
    [mine] = build_catalog(tables, translator=Mine()).entries
    assert mine.spec.tags.items() >= {"tier": "silver", "pii": ""}.items()
    assert list(mine.spec.owners) == ["team:x", "a@example.com"]
    [grouped] = build_catalog(tables, group_name="rest", translator=Grouped()).entries
    assert grouped.spec.group_name == "theirs"
    assert build_catalog([CLEAN], group_name="rest").entries[0].spec.group_name == "rest"


def test_a_source_that_an_asset_writes_is_a_plain_dependency(logs: StreamTablesResource) -> None:
    @dg.asset(key=["sales", "orders"])
    def orders() -> None: ...

    defs = build_definitions(resource=logs, tables=[CLEAN], assets=[orders], compile_at_load=False)
    graph = defs.resolve_asset_graph()
    assert graph.get(key("sales/orders")).is_materializable
    assert graph.get(key("clean")).parent_keys == {key("sales/orders")}
    catalog = build_catalog([CLEAN], written_by_dagster=[key("sales/orders")])
    assert build_source_assets(tables=catalog) == []


def test_the_file_of_a_table_is_a_code_reference(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "clean.sql").write_text(f"-- schedule: 1h\n\n{CLEAN.query}")
    defs = build_definitions(resource=logs, folder=folder, tables=[TOTALS])
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    [reference] = specs[key("clean")].metadata[metadata.CODE_REFERENCES].code_references
    assert (reference.file_path, reference.line_number) == (str(folder / "clean.sql"), 3)
    assert key("sales/totals") in specs


def test_two_calls_with_two_names_go_into_one_code_location(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    other = StreamTablesResource(root=str(tmp_path / "other"))
    defs = dg.Definitions.merge(
        build_definitions(resource=logs, tables=[CLEAN]),
        build_definitions(
            resource=other,
            name="other",
            tables=[StreamTable("b", "SELECT id FROM other.orders", schedule="5m")],
        ),
    )
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "streamtables_refresh",
        "other_refresh",
    }
    assert defs.resolve_assets_def(key("b")).required_resource_keys == {"other", "io_manager"}
    assert repository.get_sensor_def("other_refresh").required_resource_keys == {"other"}


def test_everything_is_in_one_call_and_can_be_merged(logs: StreamTablesResource) -> None:
    @dg.asset
    def other() -> None: ...

    defs = dg.Definitions.merge(
        build_definitions(resource=logs, tables=[CLEAN, TOTALS]), dg.Definitions([other])
    )
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    assert [sensor.name for sensor in repository.sensor_defs] == ["streamtables_refresh"]
    kinds = ("columns", "equality", "state")
    assert sorted(schedule.name for schedule in repository.schedule_defs) == [
        f"streamtables_{kind}_schedule" for kind in kinds
    ]
    assert len(repository.asset_graph.asset_check_keys) == 10
    assert defs.resolve_job_def("streamtables_refresh_run").executor_def.name == "threads"


def test_a_process_that_only_runs_assets_compiles_nothing_when_it_loads_them(
    logs: StreamTablesResource, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run worker of 500 tables would compile all of them to refresh one."""
    monkeypatch.setattr(asset_catalog, "_shown_here", set())
    write("sales.orders", id=[1], amount=[10])

    def described() -> bool:
        defs = build_definitions(resource=logs, tables=[CLEAN])
        return metadata.PLAN in defs.resolve_asset_graph().get(key("clean")).metadata

    assert described()
    run = DefinitionsLoadContext(DefinitionsLoadType.RECONSTRUCTION, RepositoryLoadData({}))
    with loading(run):
        assert not described()


def test_a_process_that_only_runs_assets_does_not_repeat_their_problems(
    logs: StreamTablesResource, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asset_catalog, "_shown_here", set())
    broken = StreamTable("broken", "SELECT id FROM")

    def warnings() -> int:
        caplog.clear()
        build_definitions(resource=logs, tables=[broken])
        return sum(each.levelno == logging.WARNING for each in caplog.records)

    with caplog.at_level(logging.DEBUG, logger="dagster_streamtables"):
        assert warnings() == 1
        run = DefinitionsLoadContext(DefinitionsLoadType.RECONSTRUCTION, RepositoryLoadData({}))
        with loading(run):
            assert warnings() == 0


def test_of_many_tables_the_sql_of_the_change_is_not_shown(
    logs: StreamTablesResource, write: Write
) -> None:
    write("sales.orders", id=[1], amount=[10])
    many = [StreamTable(f"t{n}", CLEAN.query) for n in range(SHOWN + 1)]
    few, too_many = (build_catalog(some, lake=logs.logs()) for some in (many[1:], many))
    assert metadata.CHANGE_SQL in few["t1"].spec.metadata
    assert metadata.CHANGE_SQL not in too_many["t1"].spec.metadata
    assert metadata.PLAN in too_many["t1"].spec.metadata


def test_an_empty_code_location_loads(logs: StreamTablesResource) -> None:
    dg.Definitions.validate_loadable(build_definitions(resource=logs))


@pytest.mark.process
def test_a_code_location_loads_without_spark(tmp_path: Path, write: Write) -> None:
    write("sales.orders", id=[1], amount=[10])
    program = f"""
import sys
from dagster_streamtables import StreamTablesResource, build_definitions
from dagster_streamtables.runtime.model.stream_table import StreamTable
table = StreamTable("clean", {CLEAN.query!r}, schedule="5m")
defs = build_definitions(resource=StreamTablesResource(root={str(tmp_path)!r}), tables=[table])
defs.get_repository_def()
print("pyspark" in sys.modules)
"""
    root = Path(__file__).parents[2]
    said = python("-c", program, cwd=root)
    assert said.stdout == "False\n", said.stderr


def test_a_source_that_merged_definitions_write_is_told_by_its_key(
    logs: StreamTablesResource,
) -> None:
    @dg.asset(key=["sales", "orders"])
    def orders() -> None: ...

    theirs = dg.Definitions([orders])
    for key in (dg.AssetKey(["sales", "orders"]), "sales/orders", ["sales", "orders"]):
        ours = build_definitions(resource=logs, tables=[CLEAN], written_by_dagster=[key])
        graph = dg.Definitions.merge(ours, theirs).resolve_asset_graph()
        assert graph.get(orders.key).child_keys == {dg.AssetKey("clean")}
        assert graph.get(orders.key).is_materializable
    alone = build_definitions(resource=logs, tables=[CLEAN])
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="Duplicate asset key"):
        dg.Definitions.merge(alone, theirs).resolve_asset_graph()
