"""Publishers to write to, and a lake that subscribes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables import Lake
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, Subscriber


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "subscriber")


@pytest.fixture
def here(lake: Lake) -> Subscriber:
    return Subscriber(lake)


@pytest.fixture
def shop(tmp_path: Path) -> LakeOrigin:
    return LakeOrigin(tmp_path / "publisher")


def made(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    if kind == "lake":
        return LakeOrigin(tmp_path / "publisher")
    capture = "trigger" if kind == "triggers" else "auto"
    return PostgresOrigin(request.getfixturevalue("database"), capture)


ORIGINS = ["lake", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=[*ORIGINS, pytest.param("triggers", marks=pytest.mark.long)])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    return made(request.param, request, tmp_path)


@pytest.fixture(params=ORIGINS)
def slotted(request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    """One that has a slot, which triggers have not."""
    return made(request.param, request, tmp_path)
