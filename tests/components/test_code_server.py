"""What Dagster's UI is told of a project that `dg` has made, by a code server of its own.

It loads the definitions, a function, and then loads them again by what it knew; and serves those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

from components.conftest import append, written
from components.test_project import FILES, REVENUE
from dagster_streamtables.orchestration.catalog import metadata

pytestmark = pytest.mark.process

TABLES = {
    "revenue": REVENUE,
    "mistyped": "SELECT regoin FROM sales.customers",
    "random": "SELECT id, uuid() AS code FROM sales.orders",
}
YAML = """\
type: dagster_streamtables.StreamTablesComponent
attributes:
  resource:
    root: "{{ context.project_root }}/lake"
  folder: tables
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Mapping[str, Any]]]:
    """The metadata of each asset, as the code server has it."""
    root = tmp_path_factory.mktemp("shop")
    texts = {path: FILES[path] for path in FILES if "ingest" not in path}
    below = "src/shop/defs/streams"
    tables = {f"{below}/tables/mart/{name}.sql": query for name, query in TABLES.items()}
    for path, text in {**texts, f"{below}/defs.yaml": YAML, **tables}.items():
        written(root / path, text)
    append(root / "lake", "sales.orders", id=[1], customer=[1], amount=[10])
    append(root / "lake", "sales.customers", id=[1], region=["north"])
    target = ModuleTarget("shop.definitions", None, str(root / "src"), "shop")
    with dg.instance_for_test() as instance, WorkspaceProcessContext(instance, target) as process:
        context = process.create_request_context()
        errors = [each.load_error for each in context.get_code_location_entries().values()]
        assert not any(errors), errors
        graph = context.asset_graph
        yield {key.to_user_string(): graph.get(key).metadata for key in graph.get_all_asset_keys()}


def test_a_sound_table_shows_its_plan_and_columns(shown: Mapping[str, Mapping[str, Any]]) -> None:
    found = shown["mart/revenue"]
    assert {metadata.PLAN, "dagster/column_schema", "dagster/column_lineage"} <= found.keys()
    assert metadata.PROBLEM not in found


@pytest.mark.parametrize(("name", "said"), [("mistyped", "regoin"), ("random", "uuid")])
def test_a_broken_table_shows_its_problem(
    shown: Mapping[str, Mapping[str, Any]], name: str, said: str
) -> None:
    assert said in str(shown[f"mart/{name}"][metadata.PROBLEM])
