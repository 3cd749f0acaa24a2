"""A defs folder to write into, and the definitions that are loaded from it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster.components.testing import DefsFolderSandbox, create_defs_folder_sandbox
from deltalake import write_deltalake

from dagster_streamtables.runtime.lake import Lake

TYPE = "dagster_streamtables.StreamTablesComponent"
Load = Callable[[], dg.Definitions]
Put = Callable[[str, str], Path]


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as made:
        yield made


@pytest.fixture
def put(sandbox: DefsFolderSandbox) -> Put:
    """Write a file below the defs folder: ``put("mart/defs.yaml", "…")``."""

    return lambda path, text: written(sandbox.defs_folder_path / path, textwrap.dedent(text))


@pytest.fixture
def load(sandbox: DefsFolderSandbox) -> Iterator[Load]:
    """The definitions of the whole project, as `load_from_defs_folder` makes them."""
    with ExitStack() as stack:

        def build() -> dg.Definitions:
            return stack.enter_context(sandbox.build_all_defs())

        yield build


@pytest.fixture
def lake(sandbox: DefsFolderSandbox) -> Path:
    """The root of the tables, with `sales.orders` in it."""
    root = sandbox.project_root / "lake"
    append(root, "sales.orders", id=[1, 2], region=["north", "south"], amount=[10, 5])
    return root


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def key(path: str) -> dg.AssetKey:
    return dg.AssetKey(path.split("/"))


def specs(defs: dg.Definitions) -> dict[dg.AssetKey, dg.AssetSpec]:
    return {spec.key: spec for spec in defs.resolve_all_asset_specs()}


def append(root: Path, name: str, **columns: list[Any]) -> None:
    write_deltalake(Lake(root).location(name), pa.table(columns), mode="append")
