"""The list of mutants fits the compiler; that each is killed takes `python -m qa.mutants`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qa.mutants.command import copy_compiler, load, mistakes


@pytest.mark.thorough
def test_every_mutant_breaks_a_text_that_is_in_the_compiler_once() -> None:
    found = mistakes(load())
    assert not found, "correct `rule` or `within` in qa/mutants/mutants.toml:\n" + "\n".join(found)


@pytest.mark.process
def test_what_mutants_are_run_with_is_all_that_the_compiler_needs(tmp_path: Path) -> None:
    copy_compiler(tmp_path, set())

    run = subprocess.run(
        [sys.executable, "-c", "import dagster_streamtables.compiler as c; print(c.__file__)"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, f"copy it in `copy_compiler` of qa/mutants:\n{run.stderr}"
    assert run.stdout.startswith(str(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("command", ["qa.mutants", "qa.histories.relapse"])
def test_the_commands_begin_as_a_shell_starts_them(command: str) -> None:
    """Without the paths on which pytest finds modules."""
    run = subprocess.run(
        [sys.executable, "-m", command, "no title has this"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (1, "")
