"""The project of somebody else: made for `dg`, with assets of its own that write Delta tables, and
stream tables over them by the component alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from components.conftest import TYPE, written

pytestmark = pytest.mark.process

FILES = {
    "pyproject.toml": """\
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["dagster", "dagster-streamtables", "deltalake"]

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
""",
    "src/shop/__init__.py": "",
    "src/shop/definitions.py": """\
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
""",
    "src/shop/defs/__init__.py": "",
    "src/shop/defs/ingest.py": """\
from pathlib import Path

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

LAKE = Path(__file__).parents[3] / "lake"
ROWS = {
    "orders": {"id": [1, 2, 3], "customer": [1, 1, 2], "amount": [10, 20, 5]},
    "customers": {"id": [1, 2], "region": ["north", "south"]},
}


@dg.multi_asset(specs=[dg.AssetSpec(["sales", name]) for name in ROWS])
def load():
    for name, rows in ROWS.items():
        (LAKE / "sales").mkdir(parents=True, exist_ok=True)
        write_deltalake(LAKE / "sales" / name, pa.table(rows), mode="append")
        yield dg.MaterializeResult(asset_key=["sales", name])


@dg.asset(deps=[["mart", "revenue"]])
def report() -> dg.MaterializeResult:
    table = DeltaTable(LAKE / "mart" / "revenue").to_pyarrow_table()
    return dg.MaterializeResult(metadata={"regions": len(table)})


defs = dg.Definitions(assets=[load, report], executor=dg.in_process_executor)
""",
}
REVENUE = """\
-- schedule: 5m
-- owners: team:finance
-- group: money
SELECT c.region, SUM(o.amount) AS total
FROM sales.orders AS o
JOIN sales.customers AS c ON o.customer = c.id
GROUP BY c.region
"""


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors = ""
        """What the last command wrote beside its output."""

    def dg(self, *words: str) -> str:
        (self.root / "home").mkdir(exist_ok=True)
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), *filter(None, sys.path)]),
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_HOME": str(self.root / "home"),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "VIRTUAL_ENV": sys.prefix,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            [str(Path(sys.executable).with_name("dg")), *words],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.errors = done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        said = self.dg(*words)
        return json.loads(said[said.index("{") :])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project, after `dg scaffold defs` and with a table of its own in place of the first."""
    root = tmp_path_factory.mktemp("shop")
    for path, text in FILES.items():
        written(root / path, text)
    project = Project(root)
    project.dg("scaffold", "defs", TYPE, "streams", "--table", "mart.volume")
    (root / "src/shop/defs/streams/tables/mart/revenue.sql").write_text(REVENUE)
    return project


@pytest.mark.long
def test_the_scaffolded_component_is_checked_and_joins_the_graph(project: Project) -> None:
    listed = project.json("list", "components", "--json")["items"]
    assert TYPE in {item["key"] for item in listed}

    mistyped = project.root / "src/shop/defs/streams/tables/mart/mistyped.sql"
    mistyped.write_text("SELECT amonut FROM sales.orders JOIN")
    project.dg("check", "defs")
    assert project.errors.count('stream table "mart.mistyped"') == 1, project.errors
    mistyped.unlink()

    checked = project.dg("check", "defs")
    assert "All component YAML validated successfully" in checked
    assert "All definitions loaded successfully" in checked

    found = project.json("list", "defs", "--json")
    assets = {asset["asset_key"]: asset for asset in found["assets"]}
    mine = {"mart/revenue", "mart/volume", "report"}
    assert assets.keys() == mine | {"sales/customers", "sales/orders"}
    revenue = assets["mart/revenue"]
    assert sorted(revenue["dependency_keys"]) == ["sales/customers", "sales/orders"]
    assert (revenue["group_name"], revenue["owners"]) == ("money", [{"team": "finance"}])
    assert revenue["source"] == "src/shop/defs/streams/tables/mart/revenue.sql:4"
    assert assets["report"]["dependency_keys"] == ["mart/revenue"]
    assert assets["mart/volume"]["dependency_keys"] == ["sales/orders"]
    assert [sensor["name"] for sensor in found["sensors"]] == ["streams_refresh"]


@pytest.mark.long
def test_the_whole_graph_is_materialized_in_one_run(project: Project, spark: SparkSession) -> None:
    project.dg("launch", "--assets", "*")

    volume = DeltaTable(project.root / "lake/mart/volume").to_pyarrow_table()
    assert volume.column("how_many").to_pylist() == [3]
    revenue = DeltaTable(project.root / "lake/mart/revenue").to_pyarrow_table()
    found = zip(*(revenue.column(name).to_pylist() for name in ("region", "total")), strict=True)
    assert dict(found) == {"north": 30, "south": 5}
