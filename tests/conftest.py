"""Fixtures that more than one test module needs."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import typer.testing
from alembic.util import pyfiles

from dagster_streamtables.runtime.spark import jars, session
from dagster_streamtables.runtime.spark.local_server import stop_server
from dagster_streamtables.runtime.spark.session import drop_views, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_load, _load_once = pyfiles.load_module_py, cache(pyfiles.load_module_py)


def _load_migration(module_id: str, path: Path) -> ModuleType:
    """Dagster has a hundred migrations, read for each database that it makes. `env.py` is a script,
    which is run again."""
    return _load(module_id, path) if path.name == "env.py" else _load_once(module_id, path)


pyfiles.load_module_py = _load_migration

# A runner would make the commands of their signatures at every call: a fifth of its tests' time.
typer.testing._get_command = cache(typer.testing._get_command)


_NEEDS = {"spark": "spark", "server": "postgres", "postgres": "postgres", "own_home": "process"}
"""The marker of a test that uses a fixture: the tiers of tests are chosen by what tests need."""


def pytest_itemcollected(item: pytest.Item) -> None:
    for fixture in _NEEDS.keys() & set(getattr(item, "fixturenames", ())):
        item.add_marker(_NEEDS[fixture])


def pytest_collection_finish() -> None:
    """What was collected stays until the end: looking through it for garbage takes a tenth."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


class _Fallbacks(logging.Handler):
    """What refreshes say when the change of a query could not be computed."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "the query was run in full" in record.getMessage():
            self.told.append(record.getMessage())


@pytest.fixture(autouse=True)
def fallbacks(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What fell back in a test; unless the test is marked `falls_back`, it fails then.

    A query that is run in full where its change should have been computed gives the right rows, so
    no comparison of rows would ever find what is wrong with its change.
    """
    found, logger = _Fallbacks(), logging.getLogger("dagster_streamtables")
    logger.addHandler(found)
    yield found.told
    logger.removeHandler(found)
    expected = request.node.get_closest_marker("falls_back") is not None
    assert expected or not found.told, found.told


@pytest.fixture(autouse=True)
def spark_is_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs Spark says so: otherwise it would start a JVM in the quickest tier."""
    marks = {mark.name for mark in request.node.iter_markers()}
    if not marks & {"spark", "process", "long", "hours"}:
        monkeypatch.setattr(session, "_start_local_server", _refuse_spark)


def _refuse_spark() -> str:
    pytest.fail("the test opens a session of Spark: mark it `spark`")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session on the local Spark server, which is started if it does not run.

    What the lakes of a module keep in it for their next refresh is dropped in the end: each view
    holds a snapshot in Spark's memory.
    """
    opened = open_session()
    yield opened
    drop_views(opened)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without a server; the JARs in it are the ones already fetched."""
    fetched = jars.delta_jars()[0].parent.parent
    (tmp_path / "jars").symlink_to(fetched)
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path))
    monkeypatch.setenv("STREAMTABLES_SPARK_MEMORY", "1g")
    # On a slow machine, a process that makes one would be among those that are counted.
    monkeypatch.setenv("STREAMTABLES_CLASS_ARCHIVE", "false")
    monkeypatch.delenv("STREAMTABLES_SPARK", raising=False)
    yield tmp_path
    stop_server()
