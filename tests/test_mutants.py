"""The list of mutants fits the compiler; that each is killed takes `python -m qa.mutants`."""

from __future__ import annotations

from pathlib import Path

import pytest

from own_process import python
from qa.mutants.__main__ import copy_compiler, load, mistakes


@pytest.mark.thorough
def test_every_mutant_breaks_a_text_that_is_in_the_compiler_once() -> None:
    found = mistakes(load())
    assert not found, "correct `rule` or `within` in qa/mutants/mutants.toml:\n" + "\n".join(found)


@pytest.mark.process
def test_what_mutants_are_run_with_is_all_that_the_compiler_needs(tmp_path: Path) -> None:
    copy_compiler(tmp_path, set())

    program = "import dagster_streamtables.compiler as c; print(c.__file__)"
    run = python("-c", program, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})

    assert run.returncode == 0, f"copy it in `copy_compiler` of qa/mutants:\n{run.stderr}"
    assert run.stdout.startswith(str(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("command", ["qa.mutants", "qa.histories.relapse"])
def test_the_commands_begin_as_a_shell_starts_them(command: str) -> None:
    """Without the paths on which pytest finds modules."""
    root = Path(__file__).parent.parent
    run = python("-m", command, "no title has this", cwd=root)
    assert (run.returncode, run.stderr) == (1, "")
