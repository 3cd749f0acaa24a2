"""The product's home is its owner's alone, and what another user left there is not used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark.environment import home, lock
from own_process import python

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("STREAMTABLES_HOME", str(folder))
    return folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def another_user(monkeypatch: pytest.MonkeyPatch) -> int:
    """From now on this process asks as somebody else would, who is not root either."""
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY - 1)
    return NOBODY - 1


def test_a_new_home_is_closed_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert mode(home()) == 0o700
    finally:
        os.umask(before)


def test_a_home_that_others_may_read_is_closed(folder: Path) -> None:
    folder.mkdir()
    (folder / "server.log").write_text("what a query said")
    folder.chmod(0o755)

    assert mode(home()) == 0o700


def test_a_home_that_others_may_write_is_closed_while_it_is_empty(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)

    assert mode(home()) == 0o700


@pytest.mark.parametrize("open_to", [0o770, 0o707, 0o722])
def test_a_home_in_which_others_may_have_put_something_is_refused(
    folder: Path, open_to: int
) -> None:
    # A state file that leads to their server, or JARs that ours would run.
    folder.mkdir()
    (folder / "server.json").write_text("{}")
    folder.chmod(open_to)

    with pytest.raises(EnvironmentProblem, match="other users may write") as raised:
        home()

    assert str(folder) in raised.value.where
    assert mode(folder) == open_to
    subprocess.run(raised.value.fix.split("run: ")[1], shell=True, check=True)
    assert mode(home()) == 0o700


def test_a_home_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    another_user(monkeypatch)

    with pytest.raises(EnvironmentProblem, match="belongs to another user"):
        home()


@pytest.mark.parametrize("below", ["", "deeper/home"])
def test_a_link_that_another_user_made_is_not_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    # In a shared place they could lead the server, and what it empties, into a folder of the user.
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o755)
    folder.symlink_to(mine)
    os.lchown(folder, NOBODY, -1) if os.geteuid() == 0 else another_user(monkeypatch)
    monkeypatch.setenv("STREAMTABLES_HOME", str(folder / below))

    with pytest.raises(EnvironmentProblem, match="leads through a link of another user"):
        home()

    assert mode(mine) == 0o755
    assert not list(mine.iterdir())


def test_a_link_of_the_user_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    folder.symlink_to(tmp_path / "disk")

    assert home() == folder
    assert mode(tmp_path / "disk") == 0o700


def test_a_home_that_is_no_folder_is_told_as_such(folder: Path) -> None:
    folder.write_text("")

    with pytest.raises(EnvironmentProblem, match="cannot be created") as raised:
        home()

    assert str(folder) in raised.value.why


@pytest.mark.process
def test_the_command_line_tells_it_in_words(folder: Path) -> None:
    folder.write_text("")
    program = "from dagster_streamtables.cli import app; app()"

    said = python("-c", program, "spark", "status")

    assert said.returncode == 1
    assert "Traceback" not in said.stderr
    assert "cannot be created" in said.stderr


def test_locks_are_the_owners_alone_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        with lock("sessions", "one"):
            assert mode(folder / "sessions") == 0o700
            assert mode(folder / "sessions" / "one") == 0o600
    finally:
        os.umask(before)
