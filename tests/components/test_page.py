"""The files of docs/component.md are one project, and it does what the page says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster.components.testing import DefsFolderSandbox

from components.conftest import Load, written
from dagster_streamtables import StreamTablesComponent
from dagster_streamtables.components.component import ScaffoldParams

PAGE = (Path(__file__).parents[2] / "docs" / "component.md").read_text()
BLOCKS = re.findall(r"```(yaml|sql|python)\n(?:#|--) (defs/\S+)\n(.*?)```", PAGE, flags=re.S)
FILES = {path: text for _, path, text in BLOCKS}


def test_every_block_is_a_file_and_every_part_is_shown() -> None:
    assert len(re.findall(r"```(?:yaml|sql|python)\n", PAGE)) == len(FILES) == 7
    shown = yaml.safe_load(FILES["defs/finance/defs.yaml"])["attributes"]
    assert set(shown) == {field.name for field in fields(StreamTablesComponent)}
    for option in ScaffoldParams.model_fields:
        assert f"`--{option}`" in PAGE


def test_the_project_of_the_page_is_a_code_location(
    sandbox: DefsFolderSandbox, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_ROOT", str(sandbox.project_root / "lake"))
    for path, text in FILES.items():
        written(sandbox.defs_folder_path / path.removeprefix("defs/"), text)
    (sandbox.defs_folder_path / "finance" / "tables").mkdir()

    defs = load()

    dg.Definitions.validate_loadable(defs)
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    assert {sensor.name for sensor in defs.get_repository_def().sensor_defs} == {
        f"{name}_refresh" for name in ("mart", "finance", "web", "audited", "ops")
    }
    revenue, daily = specs["mart/revenue"], specs["finance/daily"]
    assert (list(revenue.owners), revenue.tags["tier"]) == (["team:finance"], "gold")
    assert [dep.asset_key.path for dep in daily.deps] == [["raw", "bank", "transfers"]]
    assert (daily.group_name, daily.tags["domain"]) == ("books", "finance")
    assert "raw/bank/transfers" not in {key.to_user_string() for key in observed(defs)}
    visits, top = specs["lake/web/visits"], specs["lake/web/top"]
    assert (visits.group_name, list(visits.owners)) == ("web", ["team:web"])
    assert (visits.tags["fresh"], top.tags["fresh"]) == ("10m", "as-needed")
    assert ("dashboard" in visits.kinds, "dashboard" in top.kinds) == (False, True)
    assert specs["audit/refunds"].metadata["reads"] == "bank.refunds"
    assert "ops/late" in specs


def observed(defs: dg.Definitions) -> set[dg.AssetKey]:
    graph = defs.resolve_asset_graph()
    return {key for key in graph.get_all_asset_keys() if graph.get(key).is_observable}
