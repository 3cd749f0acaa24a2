"""Fixtures of the tests of the compiler."""

from __future__ import annotations

import pytest

from compiler.database import Database


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()
