"""Beside dagster-pyspark and dagster-deltalake: their sessions refresh, their IO managers read."""

# No `from __future__ import annotations`: Dagster reads the annotations of assets at run time.
import os
import subprocess
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from dagster_deltalake import DeltaTableResource, LocalConfig
from dagster_pyspark import LazyPySparkResource, PySparkResource
from deltalake import DeltaTable, write_deltalake
from pyspark.errors.exceptions.connect import SparkConnectException

from dagster_streamtables import (
    StreamTable,
    StreamTablesIOManager,
    StreamTablesResource,
    VisibleColumns,
    build_definitions,
    visible_columns,
)
from dagster_streamtables.errors import EnvironmentProblem, LostSpark
from dagster_streamtables.runtime.errors.environment_errors import machine_problem
from dagster_streamtables.runtime.spark.local_server import ensure_server
from orchestration.conftest import Write
from own_process import python

TOTALS = "SELECT customer, SUM(amount) AS total FROM sales.orders GROUP BY customer"


def stored(root: Path, *parts: str) -> None:
    """A stream table's files, its hidden column among them, as a refresh leaves them."""
    place = root.joinpath(*parts)
    place.mkdir(parents=True)
    write_deltalake(place, pa.table({"customer": [1, 2], "total": [30, 5], "__st_n": [2, 1]}))


def reading(root: Path, table: StreamTable, asset: dg.AssetsDefinition, **more: Any) -> Any:
    """What an asset returns that reads a stream table of the same code location."""
    manager = StreamTablesIOManager(root_uri=str(root), storage_options=LocalConfig())
    defs = build_definitions(
        resource=StreamTablesResource(root=str(root)), tables=[table], assets=[asset], **more
    )
    defs = dg.Definitions.merge(
        defs, dg.Definitions(resources={"io_manager": manager, "frames": frames(root)})
    )
    run = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[asset.key]
    )
    return run.output_for_node(asset.node_def.name)


def frames(root: Path) -> dg.ConfigurableIOManagerFactory:
    class Frames(VisibleColumns):
        """As dagster-deltalake-pandas has it."""

        def from_arrow(self, obj: pa.RecordBatchReader, target_type: type) -> pd.DataFrame:
            return obj.read_pandas()

        def to_arrow(self, obj: pd.DataFrame) -> tuple[pa.RecordBatchReader, dict[str, Any]]:
            return pa.Table.from_pandas(obj).to_reader(), {}

        @property
        def supported_types(self) -> list[type[object]]:
            return [pd.DataFrame]

    class Manager(StreamTablesIOManager):
        @staticmethod
        def type_handlers() -> list[Any]:
            return [Frames()]

    return Manager(root_uri=str(root), storage_options=LocalConfig())


revenue = StreamTable("mart.revenue", TOTALS)
INPUT = {"revenue": dg.AssetIn(["mart", "revenue"])}


@pytest.fixture
def root(tmp_path: Path, write: Write) -> Path:
    """A source, and a stream table over it."""
    write("sales.orders", id=[1, 2], customer=[1, 2], amount=[10, 5])
    stored(tmp_path, "mart", "revenue")
    return tmp_path


@dg.asset(ins=INPUT, key_prefix="report")
def as_table(revenue: pa.Table) -> pa.Table:
    return revenue.sort_by("customer")


@dg.asset(ins=INPUT, key_prefix="report")
def as_batches(revenue: pa.RecordBatchReader) -> pa.Table:
    return revenue.read_all().sort_by("customer")


@dg.asset(ins=INPUT, key_prefix="report")
def as_dataset(revenue: ds.Dataset) -> pa.Table:
    assert revenue.schema.names == ["customer", "total"]
    return revenue.to_table(filter=ds.field("customer") > 0).sort_by("customer")


@pytest.mark.parametrize("asset", [as_table, as_batches, as_dataset], ids=lambda a: a.op.name)
def test_the_io_manager_reads_a_stream_table_without_hidden_columns(
    root: Path, asset: dg.AssetsDefinition
) -> None:
    found = reading(root, revenue, asset)
    assert found.to_pydict() == {"customer": [1, 2], "total": [30, 5]}
    # And it writes as dagster-deltalake does.
    written = DeltaTable(root / "report" / asset.key.path[-1]).to_pyarrow_table()
    assert sorted(written.column("total").to_pylist()) == [5, 30]


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        pytest.param(
            dg.AssetIn(["mart", "revenue"], metadata={"columns": ["total"]}),
            ["total"],
            id="columns that an input names are those it gets",
        ),
        pytest.param(
            dg.AssetIn(["sales", "orders"]),
            ["id", "customer", "amount"],
            id="a table that is not a stream table is read as it is",
        ),
    ],
)
def test_an_input_has_the_columns_of_its_table(
    root: Path, given: dg.AssetIn, columns: list[str]
) -> None:
    @dg.asset(ins={"rows": given}, key_prefix="report")
    def totals(rows: pa.Table) -> pa.Table:
        return rows

    assert reading(root, revenue, totals).column_names == columns


def test_other_types_than_those_of_pyarrow(root: Path) -> None:
    given = dg.AssetIn(["mart", "revenue"], input_manager_key="frames")

    @dg.asset(ins={"rows": given}, key_prefix="report")
    def totals(rows: pd.DataFrame) -> pa.Table:
        return pa.Table.from_pandas(rows)

    assert reading(root, revenue, totals).column_names == ["customer", "total"]


def test_a_stream_table_is_found_by_its_name_whatever_its_key(tmp_path: Path, write: Write) -> None:
    """By its key, the one would be looked for in `b/c`, the other in `public/orders_by`."""
    write("sales.orders", id=[1], customer=[1], amount=[10])
    for name in ("a.b.c", "plain"):
        parts = name.split(".") if "." in name else ["public", name]
        stored(tmp_path, *parts)
        key = name.split(".")

        @dg.asset(ins={"found": dg.AssetIn(key)}, key_prefix="report", name=f"of_{key[-1]}")
        def report(found: pa.Table) -> pa.Table:
            return found

        assert reading(tmp_path, StreamTable(name, TOTALS), report).num_rows == 2


def test_visible_columns_of_a_table_opened_by_delta_rs(root: Path) -> None:
    place = str(root / "mart" / "revenue")
    table = DeltaTableResource(url=place, storage_options=LocalConfig()).load()
    assert visible_columns(table) == ["customer", "total"]
    assert list(table.to_pandas(columns=visible_columns(table))) == ["customer", "total"]


def test_one_spark_for_a_resource() -> None:
    pyspark = LazyPySparkResource(spark_config={})
    with pytest.raises(EnvironmentProblem, match="both spark and pyspark"):
        StreamTablesResource(root="lake", spark="sc://host:15002", pyspark=pyspark)


def test_a_resource_without_a_session_is_named(tmp_path: Path) -> None:
    class Other(dg.ConfigurableResource):
        pass

    resource = StreamTablesResource(root=str(tmp_path), pyspark=Other())
    with pytest.raises(EnvironmentProblem, match="Other has no Spark session"):
        resource.session()


def test_a_code_location_with_a_lazy_session_loads_without_a_session(tmp_path: Path) -> None:
    pyspark = LazyPySparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"})
    resource = StreamTablesResource(root=str(tmp_path), pyspark=pyspark)
    defs = build_definitions(resource=resource, tables=[revenue])
    assert dg.AssetKey(["mart", "revenue"]) in defs.resolve_asset_graph().get_all_asset_keys()
    assert resource.logs().version("mart.revenue") is None


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind", [PySparkResource, pytest.param(LazyPySparkResource, marks=pytest.mark.long)]
)
def test_the_session_of_dagster_pyspark_refreshes(
    kind: type[Any], tmp_path: Path, write: Write
) -> None:
    pyspark = kind(spark_config={"spark.remote": ensure_server()})
    sessions: list[Any] = []

    @dg.asset(deps=[["mart", "revenue"]], required_resource_keys={"pyspark"})
    def rows(context: dg.AssetExecutionContext) -> None:
        session = context.resources.pyspark.spark_session
        sessions.append(session)
        found = session.read.format("delta").load(str(tmp_path / "mart" / "revenue"))
        assert found.count() == 2

    class Watched(StreamTablesResource):
        def session(self) -> Any:
            sessions.append(super().session())
            return sessions[-1]

    write("sales.orders", id=[1, 2], customer=[1, 2], amount=[10, 5])
    resource = Watched(root=str(tmp_path), pyspark=pyspark)
    defs = build_definitions(resource=resource, tables=[revenue], assets=[rows])
    job = dg.Definitions.merge(
        defs, dg.Definitions(resources={"pyspark": pyspark})
    ).resolve_implicit_global_asset_job_def()
    run = job.execute_in_process(asset_selection=[dg.AssetKey(["mart", "revenue"]), rows.key])
    assert run.success
    refreshed, read = sessions
    assert refreshed is read, "the run used two sessions"
    [done] = run.asset_materializations_for_node("mart__revenue")
    assert done.metadata["streamtables/action"].value == "REINITIALIZE"


CLASSIC = """
import sys
from dagster_pyspark import LazyPySparkResource
from dagster_streamtables import StreamTable, StreamTablesResource, delta_settings
given = delta_settings() if sys.argv[2] == "with" else {}
mine = {"spark.master": "local[1]", "spark.databricks.delta.snapshotPartitions": "1"}
pyspark = LazyPySparkResource(spark_config=mine | given)
resource = StreamTablesResource(root=sys.argv[1], pyspark=pyspark)
table = StreamTable("mart.revenue", sys.argv[3], differential_max_change_ratio=0)
print(resource.lake().refresh(table).action)
pyspark.spark_session.sql(f"INSERT INTO delta.`{sys.argv[1]}/sales/orders` VALUES (3, 1, 7)")
print(resource.lake().refresh(table).action, resource.lake().check(table).equal)
"""


def classic(root: Path, delta: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a process has sessions of one kind, and this one has Connect's."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    return python("-c", CLASSIC, root, delta, TOTALS, env=environment)


@pytest.mark.spark
@pytest.mark.long
def test_a_classic_session_of_dagster_pyspark_refreshes(tmp_path: Path, write: Write) -> None:
    write("sales.orders", id=[1, 2], customer=[1, 2], amount=[10, 5])
    done = classic(tmp_path, "with")
    assert done.stdout == "REINITIALIZE\nDIFFERENTIAL True\n", done.stderr


@pytest.mark.spark
@pytest.mark.long
def test_a_classic_session_without_delta_is_told_so(tmp_path: Path, write: Write) -> None:
    write("sales.orders", id=[1, 2], customer=[1, 2], amount=[10, 5])
    done = classic(tmp_path, "without")
    last = "the Spark session is not configured for Delta"
    assert f'EnvironmentProblem: stream table "mart.revenue": {last}' in done.stderr


def test_what_spark_says_of_a_session_without_delta() -> None:
    said = (
        "An error occurred while calling o34.load.\n: org.apache.spark.SparkClassNotFoundException:"
        " [DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider "
        "name is correct"
    )
    problem = machine_problem(RuntimeError(said))
    assert problem is not None
    assert problem.what == "the Spark session is not configured for Delta"
    assert machine_problem(RuntimeError(said.replace("delta.", "avro."))) is None


@pytest.mark.parametrize(
    "said",
    [
        "[NO_ACTIVE_SESSION] No active Spark session found. Please create a new Spark session",
        "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
        "[INVALID_HANDLE.SESSION_CHANGED] The handle 1 is invalid. The session has changed.",
    ],
)
def test_what_a_client_says_of_a_server_that_was_killed(said: str) -> None:
    assert isinstance(machine_problem(SparkConnectException(said)), LostSpark)
