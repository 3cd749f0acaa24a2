"""`StreamTablesComponent`: YAML and `.sql` files → the definitions of a code location."""

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.

import logging
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.resolved.errors import ResolutionException
from dagster.components.testing import DefsFolderSandbox

from components.conftest import TYPE, Load, Put, key, specs
from dagster_streamtables import StreamTablesComponent, build_definitions
from dagster_streamtables.compiler import View
from dagster_streamtables.components import component
from dagster_streamtables.components.component_settings import OpSettings
from dagster_streamtables.components.yaml_settings import resolver
from dagster_streamtables.declare.sql_files import read_files
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.setting import settings_of
from dagster_streamtables.worker.location import of_definitions

HERE = f"type: {TYPE}\nattributes:\n  resource: {{root: '{{{{ context.project_root }}}}/lake'}}\n"
PAID = "-- schedule: 5m\n-- tags: tier=gold\nSELECT id, amount FROM sales.orders WHERE amount > 5\n"


def references(spec: dg.AssetSpec) -> list[tuple[str, int | None]]:
    found = spec.metadata[metadata.CODE_REFERENCES].code_references
    return [(Path(each.file_path).name, each.line_number) for each in found]


def test_a_folder_of_files_is_a_code_location(put: Put, load: Load, lake: Path) -> None:
    put("mart/defs.yaml", f"{HERE}  folder: tables\n")
    put("mart/tables/sales/paid.sql", PAID)
    defs = load()
    dg.Definitions.validate_loadable(defs)
    paid = specs(defs)[key("sales/paid")]
    assert [dep.asset_key for dep in paid.deps] == [key("sales/orders")]
    assert paid.tags["tier"] == "gold"
    assert paid.freshness_policy is not None
    columns = paid.metadata[metadata.COLUMN_SCHEMA].columns
    assert [column.name for column in columns] == ["id", "amount"]
    assert references(paid) == [("paid.sql", 3), ("defs.yaml", 1)]
    repository = defs.get_repository_def()
    assert [sensor.name for sensor in repository.sensor_defs] == ["mart_refresh"]
    assert {schedule.name for schedule in repository.schedule_defs} == {
        f"mart_{kind}_schedule" for kind in ("equality", "state", "columns")
    }
    assert defs.resolve_asset_graph().get(key("sales/orders")).is_observable
    assert (defs.resources or {})["mart"].root == str(lake)


def test_a_worker_finds_what_the_sensor_of_a_component_refreshes(
    put: Put, load: Load, lake: Path
) -> None:
    """Dagster serves a copy of the sensor, with the place of the component."""
    put("mart/defs.yaml", f"{HERE}  folder: tables\n")
    put("mart/tables/sales/paid.sql", PAID)
    driven = of_definitions(load(), "shop.definitions", None)
    assert [each.table.name for each in driven.nodes.examined] == ["sales.paid"]
    assert driven.logs.root == str(lake)


def test_tables_and_views_are_written_in_the_yaml(put: Put, load: Load, lake: Path) -> None:
    put(
        "mart/defs.yaml",
        HERE
        + """\
  views:
    - name: big
      query: SELECT id, amount FROM sales.orders WHERE amount > 5
  tables:
    - name: mart.big
      query: |
        SELECT id
        FROM big
      mode: full
      schedule: 1h
      owners: [team:finance]
      tags: {tier: 1}
      group: money
      differential_max_change_ratio: 1
    - {name: mart.one, query: SELECT id FROM mart.big, owners: a@example.com}
""",
    )
    found = specs(load())
    big, one = found[key("mart/big")], found[key("mart/one")]
    table = metadata.read_definition(big.metadata)
    assert (table.mode, table.schedule) == (Mode.FULL, "1h")
    assert table.differential_max_change_ratio == 1
    assert [view.name for view in table.views] == ["big"]
    assert (list(big.owners), big.tags["tier"], big.group_name) == (["team:finance"], "1", "money")
    assert [dep.asset_key for dep in big.deps] == [key("sales/orders")]
    assert [dep.asset_key for dep in one.deps] == [key("mart/big")]
    assert list(one.owners) == ["a@example.com"]
    assert references(big)[0] == ("defs.yaml", 10)


def test_a_table_that_cannot_be_is_said_with_its_line_and_leaves_the_others_alone(
    put: Put, load: Load, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = """\
  tables:
    - {name: good, query: SELECT id FROM sales.orders}
    - name: mode
      query: SELECT id FROM sales.orders
      mode: quick
    - name: owner
      query: SELECT id FROM sales.orders
      owners: [ann]
"""
    put("mart/defs.yaml", HERE + tables)
    with caplog.at_level(logging.WARNING):
        found = specs(load())
    assert metadata.PROBLEM not in found[key("good")].metadata
    mode = found[key("mode")].metadata[metadata.PROBLEM].value
    assert mode["what"] == 'stream table "mode": there is no mode "quick"'
    assert mode["where"].endswith("mart/defs.yaml:7")
    assert (
        '"ann" is not a valid owner' in found[key("owner")].metadata[metadata.PROBLEM].value["what"]
    )
    put("mart/defs.yaml", f"{HERE}{tables}  strict: true\n")
    with pytest.raises(ComponentTreeException) as raised:
        load()
    assert 'there is no mode "quick"' in str(causes(raised.value))


def causes(error: BaseException | None) -> list[str]:
    return [str(error), *causes(error.__cause__ or error.__context__)] if error else []


def test_translation_sets_what_the_asset_looks_like(put: Put, load: Load, lake: Path) -> None:
    put(
        "mart/defs.yaml",
        HERE
        + """\
  folder: tables
  group_name: rest
  translation:
    key_prefix: [lake]
    group_name: "{{ st.schema }}"
    description: "{{ st.table.schedule }} of {{ st.sources[0] }}"
    owners: [team:them]
    tags: {schema: "{{ st.schema }}"}
post_processing:
  assets:
    - target: key:"lake/sales/paid"
      attributes: {tags: {seen: "yes"}}
""",
    )
    put("mart/tables/sales/paid.sql", PAID.replace("-- tags", "-- owners: team:us\n-- tags"))
    put("mart/tables/sales/n.sql", "SELECT COUNT(*) AS n FROM sales.paid")
    found = specs(load())
    paid, n = found[key("lake/sales/paid")], found[key("lake/sales/n")]
    assert (paid.group_name, paid.description) == ("sales", "5m of sales.orders")
    assert list(paid.owners) == ["team:them"]
    assert {"tier": "gold", "schema": "sales", "seen": "yes"}.items() <= paid.tags.items()
    assert "seen" not in n.tags
    assert [dep.asset_key for dep in n.deps] == [paid.key]
    assert metadata.read_definition(paid.metadata).name == "sales.paid"


def test_settings_reach_what_they_set(
    put: Put, load: Load, sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_SECRET", "hidden")
    put(
        "mart/defs.yaml",
        f"""\
type: {TYPE}
attributes:
  name: money
  resource:
    root: ../../lake
    spark: "{{{{ env('NO_SPARK', 'sc://spark:15002') }}}}"
    storage_options:
      SECRET: "{{{{ env.LAKE_SECRET }}}}"
      ABSENT: "{{{{ env.LAKE_ABSENT }}}}"
      MADE: "x-{{{{ env.LAKE_SECRET }}}}"
    max_concurrent_refreshes: 2
  tables:
    - {{name: t, query: SELECT id FROM sales.orders, schedule: 10s}}
  group_name: gold
  source_group_name: raw
  source_keys: {{sales.orders: shop/orders}}
  op: {{pool: spark, tags: {{size: small}}, max_retries: 7, retry_delay_seconds: 2}}
  sensor: {{enabled: false, interval_seconds: 11}}
  checks:
    {{equality: "0 4 * * *", state: null, columns: null, freshness: null, retention: null,
    timezone: Europe/Berlin, enabled: true}}
  executor: code_location
  min_schedule_seconds: 10
  compile_at_load: false
""",
    )
    defs = load()
    resource = (defs.resources or {})["money"]
    assert resource.root == str(sandbox.defs_folder_path / "mart" / "../../lake")
    assert (resource.spark, resource.max_concurrent_refreshes) == ("sc://spark:15002", 2)
    assert isinstance(resource.storage_options["SECRET"], dg.EnvVar)
    assert set(resource.storage_options) == {"SECRET", "MADE"}
    assert resource.storage_options["MADE"] == "x-hidden"
    with resource.process_config_and_initialize_cm() as opened:
        assert opened.storage_options["SECRET"] == "hidden"
    asset = defs.resolve_assets_def(key("t"))
    assert (asset.op.pool, asset.op.tags["size"]) == ("spark", "small")
    assert asset.op.retry_policy == dg.RetryPolicy(
        max_retries=7, delay=2, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
    )
    found = specs(defs)
    assert (found[key("t")].group_name, found[key("shop/orders")].group_name) == ("gold", "raw")
    sensor = defs.resolve_sensor_def("money_refresh")
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == 11
    [schedule] = defs.get_repository_def().schedule_defs
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 4 * * *", "Europe/Berlin")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("resource: {root: '{{ env.NO_ROOT }}'}\n  folder: .", "resource.root is empty"),
        ("resource: {root: lake}\n  folder: nowhere", "there is no folder"),
        ("resource: {root: lake}", "there are no stream tables"),
        ("resource: {root: lake}\n  folders: tables", "folders"),
        (
            "resource: {root: lake}\n  tables: [{name: a, query: SELECT id FROM b}]"
            "\n  sensor: {stuck_after: soon}",
            "soon",
        ),
        (
            "resource: {root: lake, max_concurrent_refreshes: 0}\n  folder: .",
            "max_concurrent_refreshes is 0",
        ),
    ],
)
def test_a_mistake_is_named(put: Put, load: Load, attributes: str, said: str) -> None:
    put("mart/defs.yaml", f"type: {TYPE}\nattributes:\n  {attributes}\n")
    with pytest.raises((ComponentTreeException, ResolutionException)) as raised:
        load()
    assert said in str(causes(raised.value))


def test_what_a_python_file_or_another_component_writes_joins_the_graph(
    put: Put, load: Load, lake: Path
) -> None:
    put("a/defs.yaml", HERE + "  tables: [{name: clean, query: SELECT id FROM sales.orders}]\n")
    put(
        "b/defs.yaml",
        HERE
        + "  tables:\n    - {name: n, query: SELECT COUNT(*) AS n FROM clean}\n"
        + "    - {name: m, query: SELECT id FROM sales.returns}\n"
        + f"---\n{HERE}  tables: [{{name: l, query: SELECT id FROM sales.returns}}]\n",
    )
    put(
        "ingest.py",
        """\
        import dagster as dg

        @dg.asset(key=["sales", "orders"])
        def orders() -> None: ...
        """,
    )
    defs = load()
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert graph.get(key("clean")).parent_keys == {key("sales/orders")}
    assert graph.get(key("n")).parent_keys == {key("clean")}
    assert graph.get(key("sales/orders")).is_materializable
    assert graph.get(key("sales/returns")).is_observable
    assert set(defs.resources or {}) == {"a", "b", "b_1"}


def test_components_in_python_may_ask_for_one_another(put: Put, load: Load, lake: Path) -> None:
    for name, query in (("a", "SELECT id FROM sales.orders"), ("b", "SELECT id FROM a")):
        put(
            f"{name}.py",
            f"""\
            import dagster as dg
            import dagster_streamtables as st

            @dg.component_instance
            def tables(context: dg.ComponentLoadContext) -> st.StreamTablesComponent:
                return st.StreamTablesComponent(
                    resource=st.StreamTablesResource(root={str(lake)!r}),
                    tables=[st.StreamTable("{name}", "{query}")],
                )

            @dg.component_instance
            def more(context: dg.ComponentLoadContext) -> st.StreamTablesComponent:
                return st.StreamTablesComponent(
                    resource=st.StreamTablesResource(root={str(lake)!r}),
                    tables=[st.StreamTable("{name}2", "SELECT id FROM {name}")],
                )
            """,
        )
    put(
        "c.py",
        """\
        import dagster as dg

        @dg.definitions
        def defs(context: dg.ComponentLoadContext):
            mine = {spec.key for spec in context.build_defs("d").resolve_all_asset_specs()}
            return dg.Definitions(assets=[dg.AssetSpec("c", deps=sorted(mine))])
        """,
    )
    put("d/defs.yaml", HERE + "  tables: [{name: d, query: SELECT id FROM a}]\n")
    defs = load()
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    names = {"a", "a2", "b", "b2", "c", "d", "sales/orders"}
    assert graph.get_all_asset_keys() == {key(name) for name in names}
    assert graph.get(key("sales/orders")).is_observable
    assert len(defs.resources or {}) == 5
    assert graph.get(key("d")).parent_keys == {key("a")}


def test_a_layer_is_as_fresh_as_the_components_over_it_need(
    put: Put, load: Load, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = {
        "bronze": "{name: clean, query: SELECT id FROM sales.orders}, "
        "{name: daily, query: SELECT id FROM sales.orders}",
        "silver": "{name: paid, query: SELECT id FROM clean}",
        "gold": "{name: top, query: SELECT id FROM paid, schedule: 1m}, "
        "{name: report, query: SELECT id FROM daily, schedule: '0 6 * * *'}",
    }
    for layer, written in tables.items():
        put(f"{layer}/defs.yaml", f"{HERE}  tables: [{written}]\n")
    with caplog.at_level(logging.WARNING):
        found = specs(load())
    schedules = {
        spec.key.to_user_string(): spec.metadata[metadata.RESOLVED_SCHEDULE]
        for spec in found.values()
        if metadata.RESOLVED_SCHEDULE in spec.metadata
    }
    assert schedules["clean"] == "1m, from top through paid"
    assert schedules["paid"] == "1m, from top"
    assert found[key("clean")].freshness_policy == found[key("top")].freshness_policy
    assert "the cron schedule of report, elsewhere" in schedules["daily"]
    assert any('stream table "daily": on demand' in each for each in caplog.messages)


def test_sources_are_left_to_others_where_that_is_said(put: Put, load: Load, lake: Path) -> None:
    table = "  tables: [{name: clean, query: SELECT id FROM sales.orders}]\n"
    for more in ("  observe_sources: false\n", "  written_by_dagster: [sales/orders]\n"):
        put("a/defs.yaml", HERE + table + more)
        elsewhere = dg.Definitions([dg.AssetSpec(["sales", "orders"])])
        graph = dg.Definitions.merge(load(), elsewhere).resolve_asset_graph()
        assert not graph.get(key("sales/orders")).is_observable


def test_a_component_and_plain_definitions_are_one_code_location(
    put: Put, load: Load, lake: Path
) -> None:
    put("a/defs.yaml", HERE + "  tables: [{name: clean, query: SELECT id FROM sales.orders}]\n")
    plain = build_definitions(
        resource=StreamTablesResource(root=str(lake)),
        tables=[StreamTable("n", "SELECT COUNT(*) AS n FROM clean, sales.orders")],
        written_by_dagster=[key("clean"), key("sales/orders")],
    )
    defs = dg.Definitions.merge(load(), plain)
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert graph.get(key("n")).parent_keys == {key("clean"), key("sales/orders")}
    assert graph.get(key("sales/orders")).is_observable
    assert set(defs.resources or {}) == {"a", "streamtables"}


def test_a_subclass_changes_assets_and_what_a_refresh_does(
    put: Put, load: Load, lake: Path
) -> None:
    put(
        "a/kind.py",
        """\
        import dagster as dg
        from dagster_streamtables import StreamTablesComponent

        class Mine(StreamTablesComponent):
            def get_asset_spec(self, props):
                return super().get_asset_spec(props).merge_attributes(tags={"by": "subclass"})

            def execute(self, context, streamtables, spec, config):
                yield dg.MaterializeResult(
                    asset_key=spec.key, metadata={"root": streamtables.root, "full": config.full}
                )
        """,
    )
    put(
        "a/defs.yaml",
        HERE.replace(TYPE, ".kind.Mine")
        + "  tables: [{name: t, query: SELECT id FROM sales.orders}]\n"
        "  translation: {tags: {also: '{{ spec.tags.by }}'}}\n",
    )
    defs = load()
    spec = specs(defs)[key("t")]
    assert {"by": "subclass", "also": "subclass"}.items() <= spec.tags.items()
    done = dg.materialize([defs.resolve_assets_def(key("t"))])
    [event] = done.get_asset_materialization_events()
    found = event.materialization.metadata
    assert (found["root"].value, found["full"].value) == (str(lake), False)


def test_yaml_has_every_setting_with_the_default_and_the_words_of_its_class() -> None:
    schema = StreamTablesComponent.get_model_cls().model_json_schema()  # type: ignore[union-attr]
    for kind in (StreamTable, View, CheckSettings, SensorSettings, OpSettings):
        fields = schema["$defs"][f"{kind.__name__}FieldsModel"]["properties"]
        settings = {each.name: each for each in settings_of(kind)}
        assert fields.keys() == settings.keys()
        for name, each in settings.items():
            assert fields[name]["description"] == each.description
            if isinstance(each.default, str | int | float) and not isinstance(each.default, Enum):
                assert fields[name]["default"] == each.default
    resource = schema["$defs"]["StreamTablesResourceFieldsModel"]["properties"]
    assert resource.keys() == StreamTablesResource.model_fields.keys() - {"pyspark"}
    assert all(about.get("description") for about in schema["properties"].values())


@dataclass
class Sections(dg.Resolvable):
    """What a component has below these keys."""

    sensor: Annotated[SensorSettings, resolver(SensorSettings, "")]
    checks: Annotated[CheckSettings, resolver(CheckSettings, "")]
    op: Annotated[OpSettings, resolver(OpSettings, "")]


def test_settings_are_read_from_yaml_as_they_are_declared() -> None:
    found = Sections.resolve_from_yaml(
        """\
sensor: {stuck_after: 90m, retry_first: 1h30m, name: mine, enabled: '{{ env.OFF }}'}
checks: {grace: 0s, warn_before: 3d, quick: null, equality: null, sample: null}
op: {tags: {size: 3}, max_retries: '{{ 2 }}'}
""",
        scope={"env": {"OFF": "false"}},
    )
    half = timedelta(minutes=90)
    assert found.sensor == SensorSettings("mine", False, stuck_after=half, retry_first=half)
    assert found.checks == CheckSettings(
        equality=None, quick=None, sample=None, warn_before=timedelta(days=3)
    )
    assert found.op == OpSettings(tags={"size": "3"}, max_retries=2)
    with pytest.raises(ResolutionException) as raised:
        Sections.resolve_from_yaml("sensor: {}\nchecks: {state: soon}\nop: {}")
    assert 'the setting state is "soon"' in str(causes(raised.value))


SINKS = """
from dagster_streamtables import Changes

received = []

def search_index(changes: Changes):
    received.extend(changes.rows.to_pylist())

def last_token():
    return None
"""


def test_change_assets_name_functions_of_the_project(
    put: Put, lake: Path, load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "some_sinks.py").write_text(SINKS)
    monkeypatch.syspath_prepend(tmp_path)
    put("mart/tables/paid.sql", PAID)
    put(
        "mart/defs.yaml",
        HERE
        + """  folder: tables
  change_assets:
    - function: some_sinks.search_index
      relation: sales.orders
      key: [id]
      key_prefix: [search]
      max_rows: 1000
      deadline: 2d
      stored_token: some_sinks.last_token
      group_name: sinks
""",
    )
    defs = load()
    spec = specs(defs)[key("search/search_index")]
    assert [dep.asset_key for dep in spec.deps] == [key("sales/orders")]
    assert spec.group_name == "sinks"
    assert defs.get_sensor_def("mart_changes")

    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(asset_selection=[spec.key]).success
    import some_sinks  # type: ignore[import-not-found]

    rows = [(r["_state"], r["id"], r["amount"]) for r in some_sinks.received]
    assert sorted(rows) == [("upsert", 1, 10), ("upsert", 2, 5)]


def test_a_change_asset_may_follow_a_view_of_the_folder(
    put: Put, load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "other_sinks.py").write_text(SINKS)
    monkeypatch.syspath_prepend(tmp_path)
    put("mart/tables/paid.sql", PAID)
    put("mart/tables/large.sql", "-- kind: view\nSELECT * FROM sales.orders WHERE amount > 5\n")
    sink = "    - {function: other_sinks.search_index, relation: large, name: %s}\n"
    feed = "  change_assets:\n" + sink % "one" + sink % "two"
    put("mart/defs.yaml", HERE + "  folder: tables\n" + feed)
    folders: list[Path] = []

    def read(folder: Path) -> object:
        folders.append(folder)
        return read_files(folder)

    monkeypatch.setattr(component, "read_files", read)
    found = specs(load())
    for name in ("one", "two"):
        assert [dep.asset_key for dep in found[key(name)].deps] == [key("sales/orders")]
    assert len(folders) == 1, "the folder is not read again for each asset"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("function: some.where.missing", "some.where.missing cannot be imported"),
        ("function: os.getcwd\n      envelope: upsert", "has no key"),
        ("function: os.getcwd\n      clock: days", "days"),
    ],
)
def test_a_wrong_change_asset_is_told(
    put: Put, lake: Path, load: Load, line: str, told: str
) -> None:
    put("mart/tables/paid.sql", PAID)
    put(
        "mart/defs.yaml",
        HERE + f"  folder: tables\n  change_assets:\n    - relation: sales.orders\n      {line}\n",
    )
    with pytest.raises(Exception, match=r"(?s)mart") as raised:
        load()
    assert told in str(causes(raised.value))
