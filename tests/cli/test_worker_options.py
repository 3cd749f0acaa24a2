"""What a worker drives is what its command line names."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dagster_streamtables.cli import app


@pytest.mark.parametrize("variable", ["STREAMTABLES_TABLES", "STREAMTABLES_ROOT"])
def test_variables_of_the_shell_mean_nothing_to_definitions(variable: str, tmp_path: Path) -> None:
    home = {"STREAMTABLES_HOME": str(tmp_path / "home")}

    said = CliRunner().invoke(
        app, ["worker", "-m", "no_such_module", "--no-report"], env={variable: "lake", **home}
    )

    assert said.exit_code == 1
    assert "no_such_module" in said.output + said.stderr
    assert "one place" not in said.output + said.stderr


def test_options_beside_definitions_are_refused(tmp_path: Path) -> None:
    home = {"STREAMTABLES_HOME": str(tmp_path / "home")}

    said = CliRunner().invoke(app, ["worker", "-m", "x", "--tables", "tables"], env=home)

    assert said.exit_code == 1
    assert "declarations of one place" in said.output + said.stderr
