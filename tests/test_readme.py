"""The README's code does what the README says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTablesResource, build_definitions

README = (Path(__file__).parent.parent / "README.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)
    [found] = [each for each in blocks if containing in each]
    return found


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    orders = pa.table({"id": [1, 2, 3], "customer": [1, 1, 2], "amount": [10, 20, 5]})
    customers = pa.table({"id": [1, 2], "region": ["north", "south"]})
    for name, rows in {"orders": orders, "customers": customers}.items():
        place = tmp_path / "lake" / "sales" / name
        place.mkdir(parents=True)
        write_deltalake(place, rows)
    return tmp_path


def test_the_definitions_are_a_code_location(sources: Path) -> None:
    file = sources / "tables" / "mart" / "revenue.sql"
    file.parent.mkdir(parents=True)
    file.write_text(block("sql", "region"))
    names: dict[str, Any] = {}

    exec(block("python", "build_definitions"), names)

    graph = names["defs"].resolve_asset_graph()
    revenue = graph.get(dg.AssetKey(["mart", "revenue"]))
    assert revenue.parent_keys == {
        dg.AssetKey(["sales", "orders"]),
        dg.AssetKey(["sales", "customers"]),
    }
    assert revenue.freshness_policy is not None


@pytest.mark.smoke("the README")
def test_a_few_lines_refresh_and_follow_a_table_without_dagster(
    sources: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    exec(block("python", "lake.refresh"), names)

    printed = capsys.readouterr().out
    assert "REINITIALIZE" in printed
    assert re.search(r"\|\s*1\|\s*30\|", printed)

    exec(block("python", "subscribe"), names)
    printed = capsys.readouterr().out
    assert "'_diff': 1, 'customer': 1, 'total': 30" in printed


def test_every_table_file_is_a_table_and_every_block_of_python_is_run_here(sources: Path) -> None:
    for text in re.findall(r"```sql\n(.*?)```", README, flags=re.S):
        file = sources / re.match(r"-- (tables/\S+\.sql)\n", text)[1]  # pyright: ignore
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    defs = build_definitions(
        folder="tables", resource=StreamTablesResource(root="lake"), strict=True
    )

    keys = {key.path[-1] for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert "revenue" in keys
    assert len(re.findall(r"```python", README)) == 3


def test_every_command_of_make_is_there() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
