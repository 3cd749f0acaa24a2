"""What a worker drives is what its command line names."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dagster_streamtables.cli import app


def worker(tmp_path: Path, *options: str, **environment: str) -> str:
    """What it says as it refuses to begin."""
    home = {"STREAMTABLES_HOME": str(tmp_path / "home")}
    said = CliRunner().invoke(app, ["worker", "-m", *options], env={**environment, **home})
    assert said.exit_code == 1
    return said.output + said.stderr


@pytest.mark.parametrize("variable", ["STREAMTABLES_TABLES", "STREAMTABLES_ROOT"])
def test_variables_of_the_shell_mean_nothing_to_definitions(variable: str, tmp_path: Path) -> None:
    said = worker(tmp_path, "no_such_module", "--no-report", **{variable: "lake"})
    assert "no_such_module" in said
    assert "one place" not in said


def test_options_beside_definitions_are_refused(tmp_path: Path) -> None:
    assert "declarations from one place" in worker(tmp_path, "x", "--tables", "tables")
