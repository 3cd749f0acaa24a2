"""Every command, told of a root where nothing can be done: words and a code, never a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from click.testing import Result
from deltalake import write_deltalake
from typer.testing import CliRunner

from dagster_streamtables import Lake
from dagster_streamtables.cli import app
from dagster_streamtables.cli.console import UNEXPECTED, errors_in_words
from runtime.orders import NOWHERE
from traps.faults import filled, small_disk

pytestmark = pytest.mark.process

_NOBODY = 65534
COMMANDS = {
    "refresh": [],
    "alter": ["mart.a", "--mode", "FULL"],
    "suspend": ["mart.a"],
    "resume": ["mart.a"],
    "drop": ["mart.a", "--yes"],
    "orphans": [],
    "rename": ["mart.b", "mart.a"],
    "explain": ["mart.a"],
    "validate": [],
    "check": [],
    "doctor": [],
    "retention": [],
    "vacuum": ["mart.a"],
    "status": [],
    "history": ["mart.a"],
    "stats": [],
    "events": [],
    "metrics": [],
}
NAMED = {"refresh", "explain", "check", "vacuum", "history", "drop", "rename"}
"""What needs a table that is there; the others show that there is none."""
commands = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def place() -> Iterator[Path]:
    """Also for another user to enter, which pytest's own folders are not."""
    made = Path(tempfile.mkdtemp(prefix="streamtables"))
    made.chmod(0o755)
    (made / "tables/mart").mkdir(parents=True)
    (made / "tables/mart/a.sql").write_text("SELECT id FROM sales.orders")
    yield made
    shutil.rmtree(made)


def run(command: str, root: str | Path, place: Path) -> Result:
    told = {"STREAMTABLES_ROOT": str(root), "STREAMTABLES_TABLES": str(place / "tables")}
    done = CliRunner().invoke(app, [command, *COMMANDS[command]], env=told)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert UNEXPECTED not in done.stderr
    assert (done.exit_code == 0) == (not done.stderr)
    return done


def test_a_broken_pipe_of_the_work_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """That of stdout ends a command quietly: see test_subscribe.py."""
    with pytest.raises(typer.Exit), errors_in_words():
        raise BrokenPipeError("a server has ended")
    assert f"{UNEXPECTED}: BrokenPipeError: a server has ended" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_output_is_no_full_disk_of_a_table(place: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "dagster_streamtables.cli",
        "validate",
        "--root",
        str(place),
        "--tables",
        str(place / "tables"),
    ]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("the output cannot be written: [Errno 28]")


def test_all_commands_are_here() -> None:
    """But for those that go on until they are stopped: see test_subscribe.py and tests/serve."""
    assert {each.name or each.callback.__name__ for each in app.registered_commands if each.callback
            } == {*COMMANDS, "serve", "subscribe"}  # fmt: skip


@commands
@pytest.mark.parametrize("bad", ["missing", "file", "scheme"])
def test_a_root_that_is_none_is_named(command: str, bad: str, place: Path) -> None:
    (place / "file").write_text("")
    roots = {"missing": place / "no/where", "file": place / "file", "scheme": "nope://lake/x"}
    done = run(command, roots[bad], place)
    assert not (place / "no").exists(), "who looks makes nothing"
    if command != "alter":  # which is about declarations alone
        assert done.exit_code == 1
        assert str(roots[bad]) in done.stderr.splitlines()[0]


@commands
def test_an_empty_root_has_no_tables(command: str, place: Path) -> None:
    (place / "lake").mkdir()
    assert run(command, place / "lake", place).exit_code == (1 if command in NAMED else 0)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "alter"])
def test_a_folder_that_may_not_be_read_is_named(command: str, place: Path) -> None:
    open_, shut = place / "open", place / "shut"
    open_.mkdir()
    shut.mkdir(mode=0o000)
    run(command, open_, place)  # imports what somebody else may not read
    with somebody_else():
        done = run(command, shut, place)
    assert done.exit_code == 1
    assert f'the root "{shut}" cannot be read' in done.stderr
    assert "ermission denied" in done.stderr


@contextmanager
def somebody_else() -> Iterator[None]:
    """Whom modes bind, which root they do not."""
    if os.geteuid():
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@commands
def test_a_damaged_table_is_named(command: str, place: Path) -> None:
    log = place / "lake/mart/a/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{")
    done = run(command, place / "lake", place)
    if command in {"status", "metrics", "events"}:
        assert "mart.a" in done.stdout, "as one that is not well"
    elif command == "explain":
        assert 'there is no table "sales.orders"' in done.stderr
    elif command not in {"alter", "suspend", "resume", "validate", "orphans"}:
        assert (done.exit_code, str(log)[: -len("/_delta_log")] in done.stderr) == (1, True)


@commands
@pytest.mark.parametrize("file", ["mart", "mart/a", "sales/orders"])
def test_a_file_where_a_folder_should_be_is_named(command: str, file: str, place: Path) -> None:
    lake = place / "lake"
    write_deltalake(lake / "sales/orders", pa.table({"id": [1]}))
    shutil.rmtree(lake / file, ignore_errors=True)
    (lake / file).parent.mkdir(exist_ok=True)
    (lake / file).write_text("")
    done = run(command, lake, place)
    assert "Kernel error" not in done.output
    assert "Os {" not in done.output
    if command == "refresh" or (command in {"check", "vacuum", "history"} and file == "mart/a"):
        assert done.exit_code == 1
        assert "a file is where a folder should be" in done.stderr
        assert f"\n    {lake / file}\n" in done.stderr
        assert all(part in done.stderr for part in ("why: ", "fix: "))


@pytest.mark.parametrize("command", ["refresh", "suspend"])
def test_a_read_only_root_is_named(command: str, place: Path) -> None:
    with small_disk(place / "disk"):
        write_deltalake(place / "disk/sales/orders", pa.table({"id": [1]}))
        remount = ["mount", "-o", "remount,ro", str(place / "disk")]
        subprocess.run(remount, check=True)
        done = run(command, place / "disk", place)
    assert done.exit_code == 1
    assert "the file system is read-only" in done.stderr
    assert "why: Read-only file system (os error 30)\n" in done.stderr
    assert "fix: mount it so that this process and Spark may write" in done.stderr


@pytest.mark.parametrize("command", ["refresh", "suspend"])
def test_a_full_disk_is_named(command: str, place: Path) -> None:
    with small_disk(place / "disk"):
        write_deltalake(place / "disk/sales/orders", pa.table({"id": [1]}))
        with filled(place / "disk"):
            done = run(command, place / "disk", place)
    assert done.exit_code == 1
    assert "the disk is full" in done.stderr
    assert "No space left on device (os error 28)\n" in done.stderr


def test_who_looks_from_python_makes_no_folder(tmp_path: Path) -> None:
    assert Lake(tmp_path / "lake", spark=NOWHERE).monitor.status() == []
    assert not (tmp_path / "lake").exists()
