"""What `dg scaffold defs` writes is a code location that loads, and explains itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.testing import DefsFolderSandbox

from components.conftest import Load, Put, key, specs
from dagster_streamtables import StreamTablesComponent
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.catalog import metadata

pytestmark = pytest.mark.process


def scaffold(sandbox: DefsFolderSandbox, how: Any = "yaml", **params: object) -> Path:
    return sandbox.scaffold_component(
        component_cls=StreamTablesComponent,
        defs_path="mart",
        scaffold_params=params,
        scaffold_format=how,
    )


@pytest.mark.parametrize("how", ["yaml", "python"])
def test_a_first_table_waits_for_its_source_and_then_has_columns(
    sandbox: DefsFolderSandbox, load: Load, lake: Path, how: str
) -> None:
    made = scaffold(sandbox, how, table="mart.volume", source="sales.later")
    text = (made / "tables" / "mart" / "volume.sql").read_text()
    assert "-- schedule: 5m\n" in text
    assert "sales/later" in text
    defs = load()
    dg.Definitions.validate_loadable(defs)
    spec = specs(defs)[key("mart/volume")]
    assert [dep.asset_key.path for dep in spec.deps] == [["sales", "later"]]
    assert not {metadata.PROBLEM, metadata.COLUMN_SCHEMA} & spec.metadata.keys()
    assert (defs.resources or {})["mart"].root == str(lake)
    (made / "tables" / "mart" / "volume.sql").unlink()

    scaffold(sandbox, how)
    spec = specs(load())[key("first")]
    assert "The number of rows of sales.orders." in (spec.description or "")
    assert [c.name for c in spec.metadata[metadata.COLUMN_SCHEMA].columns] == ["how_many"]


def test_parameters_are_written_and_a_file_that_is_there_is_left_alone(
    sandbox: DefsFolderSandbox, put: Put
) -> None:
    mine = put("mart/sql/a.sql", "SELECT id FROM mine\n")
    made = scaffold(
        sandbox, root="s3://lake", spark="sc://host:15002", folder="sql", table="a", schedule="1h"
    )
    written = yaml.safe_load((made / "defs.yaml").read_text())["attributes"]
    assert written == {
        "resource": {"root": "s3://lake", "spark": "sc://host:15002"},
        "folder": "sql",
    }
    assert mine.read_text() == "SELECT id FROM mine\n"


def test_a_name_that_is_none_is_refused(sandbox: DefsFolderSandbox) -> None:
    with pytest.raises(InvalidDefinition, match="escape"):
        scaffold(sandbox, table="../escape")
