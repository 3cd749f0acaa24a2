"""Publishers to write to, and a lake that subscribes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables import Lake
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "subscriber")


@pytest.fixture(params=["lake", "postgres"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    if request.param == "lake":
        return LakeOrigin(tmp_path / "publisher")
    return PostgresOrigin(request.getfixturevalue("database"))
