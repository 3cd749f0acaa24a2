"""The local Spark server: one for all, replaced when it dies, gone when it is stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import own_process
from dagster_streamtables.cli import app
from dagster_streamtables.errors import EnvironmentProblem, LostSpark
from dagster_streamtables.runtime.observe import lease
from dagster_streamtables.runtime.spark import jars, supervisor
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.local_server import (
    ensure_server,
    server_status,
    stop_server,
)
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.spark.settings import COMMIT_SETTINGS, read_as_usual
from dagster_streamtables.runtime.spark.supervisor import ServerState, birth, read_state

pytestmark = pytest.mark.process

OPEN = """
import sys
from dagster_streamtables.runtime.spark.session import open_session
session = open_session(session_id=sys.argv[1])
"""


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def said(process: subprocess.Popen[str]) -> str:
    out, complaints = process.communicate(timeout=240)
    assert process.returncode == 0, complaints
    return out.strip()


def state() -> ServerState:
    found = read_state(home())
    assert found is not None
    return found


def kill_supervisor() -> None:
    supervisor_process = psutil.Process(state().supervisor)
    supervisor_process.kill()
    psutil.wait_procs([supervisor_process])


def one(session: SparkSession) -> int:
    return session.sql("SELECT 1 AS one").collect()[0].one


def servers_of(folder: Path) -> list[psutil.Process]:
    """Every process on this machine that was started for the folder."""
    return [each for each in psutil.process_iter() if str(folder) in _command(each)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def eventually(happens: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not (happened := happens()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return happened


@pytest.mark.spark
@pytest.mark.long
def test_two_programs_that_start_at_once_get_one_server_and_stopping_leaves_none(
    own_home: Path,
) -> None:
    module = "dagster_streamtables.runtime.spark.local_server"
    start = f"from {module} import ensure_server; print(ensure_server())"

    addresses = [said(process) for process in [python(start), python(start)]]

    assert addresses == [ensure_server()] * 2
    assert {each.pid for each in servers_of(own_home)} == {state().pid, state().supervisor}
    status = server_status()
    assert status is not None
    assert status.memory_bytes > 100_000_000

    assert stop_server()

    assert servers_of(own_home) == []
    assert server_status() is None
    assert not list((own_home / "tmp").iterdir())
    assert not stop_server()


@pytest.mark.spark
@pytest.mark.long
def test_a_server_that_was_killed_is_replaced(own_home: Path) -> None:
    open_session()

    # Without waiting, so that the server may be found alive and die under the next question.
    first = state()
    psutil.Process(first.pid).kill()
    assert one(open_session()) == 1
    second = state()
    assert {each.pid for each in servers_of(own_home)} == {second.pid, second.supervisor}
    assert first.pid != second.pid

    # A server that nobody watches would never stop, so it is replaced as well.
    kill_supervisor()
    assert one(open_session()) == 1
    third = state()
    assert {each.pid for each in servers_of(own_home)} == {third.pid, third.supervisor}
    assert second.pid != third.pid


@pytest.mark.spark
@pytest.mark.long
def test_a_server_without_its_supervisor_is_found_and_stopped(own_home: Path) -> None:
    ensure_server()
    kill_supervisor()

    status = server_status()
    assert status is not None
    assert (status.pid, status.supervised) == (state().pid, False)
    shown = CliRunner().invoke(app, ["spark", "status"])
    assert (shown.exit_code, str(status.pid) in shown.stdout) == (0, True)
    assert "killed" in shown.stdout

    stopped = CliRunner().invoke(app, ["spark", "stop"])
    assert stopped.stdout == "Stopped the Spark server.\n"
    assert servers_of(own_home) == []
    assert server_status() is None


@pytest.mark.spark
@pytest.mark.long
def test_a_lost_server_is_told_without_a_warning_of_its_client(own_home: Path) -> None:
    lose = (
        "import psutil\n"
        "from dagster_streamtables.runtime.spark.local_server import server_status\n"
        "server = psutil.Process(server_status().pid)\n"
        "server.kill()\n"
        "psutil.wait_procs([server])\n"
        "try:\n    session.sql('SELECT 1').collect()\n"
        "except Exception as error:\n    print(type(error).__name__)\n"
    )
    process = python(OPEN + lose, str(uuid.uuid4()))
    out, complaints = process.communicate(timeout=240)
    assert out.strip()
    assert "RETRIES_EXCEEDED" not in complaints


@pytest.mark.spark
@pytest.mark.long
def test_an_idle_server_stops_but_not_under_a_client(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTABLES_IDLE_MINUTES", "0.1")
    session = open_session()
    before = state()

    # Three times as long as the server may be idle, within one statement.
    session.sql("SELECT java_method('java.lang.Thread', 'sleep', 18000L)").collect()
    assert state() == before

    session.stop()
    assert eventually(lambda: not servers_of(own_home))
    assert server_status() is None


def test_a_state_file_of_another_time_is_no_server(own_home: Path) -> None:
    # The numbers are those of a living process, this one, but it was not born then.
    me = os.getpid()
    stale = {"pid": me, "pid_birth": "1", "supervisor": me, "supervisor_birth": "1"}
    stale |= {"port": 1, "started": 1.0, "answers": True}
    (own_home / "server.json").write_text(json.dumps(stale))

    assert server_status() is None
    assert not stop_server()
    assert not (own_home / "server.json").exists()


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux derives the time of a birth from the clock"
)
def test_a_clock_that_is_set_makes_no_process_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux adds the time since its start to what the clock says was then."""
    me, told = os.getpid(), psutil.Process.create_time
    born = birth(me)
    assert born is not None
    state = ServerState(me, born, me, born, port=1, started=1.0)
    named = lease.describe_processes(me)
    monkeypatch.setattr(psutil.Process, "create_time", lambda each: told(each) + 60)
    assert state.is_alive
    assert not lease.are_dead(named)
    assert lease.are_dead(named + "0")
    assert not lease.are_dead(f"{lease.machine()} nobody@1")


@pytest.mark.parametrize("do", [ensure_server, pytest.param(stop_server, marks=pytest.mark.long)])
def test_a_server_that_no_state_names_is_told_and_keeps_its_files(
    own_home: Path, do: Callable[[], object]
) -> None:
    (own_home / "tmp").mkdir()
    used = own_home / "tmp" / "shuffled"
    used.touch()
    with (
        supervisor.only_one(own_home),
        pytest.raises(EnvironmentProblem, match="its state file does not name") as raised,
    ):
        do()
    assert raised.value.where == str(own_home)
    assert used.exists()
    stop_server()
    assert not used.exists()


def test_a_folder_that_is_named_in_the_meantime_keeps_its_files(
    own_home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread may start the server while a test of another one puts the variable back."""
    other, locked = tmp_path_factory.mktemp("other"), supervisor.only_one
    other.chmod(0o700)
    (other / "tmp").mkdir()
    used = [other / "server.json", other / "tmp" / "shuffled"]
    for file in used:
        file.touch()

    def then_another(folder: Path, wait: float = 0) -> FileLock:
        monkeypatch.setenv("STREAMTABLES_HOME", str(other))
        return locked(folder, wait)

    (own_home / "tmp").mkdir()
    (own_home / "tmp" / "left").touch()
    monkeypatch.setattr(supervisor, "only_one", then_another)
    stop_server()
    assert all(file.exists() for file in used)
    assert not list((own_home / "tmp").iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_state_file_that_cannot_be_read_is_no_server(own_home: Path, text: str) -> None:
    (own_home / "server.json").write_text(text)

    assert server_status() is None
    assert not stop_server()


@pytest.mark.spark
def test_a_server_that_cannot_start_shows_its_log(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTABLES_SPARK_MEMORY", "1m")

    with pytest.raises(EnvironmentProblem, match="ended while it was starting") as raised:
        ensure_server()

    assert "maximum heap" in raised.value.where
    assert servers_of(own_home) == []


@pytest.mark.spark
def test_a_session_is_found_again_by_the_next_program_without_what_was_left_in_it() -> None:
    name = str(uuid.uuid4())
    leave = (
        "session.sql('CREATE TEMP VIEW st_rows AS SELECT 42 AS x')\n"
        "session.sql('CREATE TEMP VIEW kept AS SELECT 42 AS x')\n"
        f"session.conf.set('{COMMIT_SETTINGS[2]}', 'a refresh that never was')\n"
    )
    said(python(OPEN + leave, name))

    there = "print([t.name for t in session.catalog.listTables() if t.isTemporary],"
    found = python(OPEN + f"{there} session.conf.get('{COMMIT_SETTINGS[2]}', None))", name)
    other = python(OPEN + f"{there} '')", str(uuid.uuid4()))

    assert (said(found), said(other)) == ("['kept'] None", "[]")


@pytest.mark.spark
@pytest.mark.long
def test_a_session_is_one_programs_at_a_time() -> None:
    name = str(uuid.uuid4())
    show = "print(session.session_id, flush=True)\n"
    first = python(OPEN + show + "sys.stdin.read()", name)
    assert first.stdout is not None
    with first:
        taken = first.stdout.readline().strip()
        assert said(python(OPEN + show, name)) != taken
        first.kill()
    assert said(python(OPEN + show, name)) == taken


@pytest.mark.spark
@pytest.mark.long
def test_a_session_in_which_a_statement_of_a_killed_program_runs_is_left_alone() -> None:
    name = str(uuid.uuid4())
    show = "print(session.session_id, flush=True)\n"
    pairs = "SELECT COUNT(*) FROM range(1000000) a, range(1000000) b WHERE (a.id + b.id) % 7 = 3"
    slow = (
        "def progress(*, inflight_tasks, **_):\n"
        "    if inflight_tasks: print('running', flush=True)\n"
        "session.registerProgressHandler(progress)\n"
        f"session.sql('{pairs}').collect()"
    )
    first = python(OPEN + show + slow, name)
    assert first.stdout is not None
    with first:
        busy = first.stdout.readline().strip()
        assert first.stdout.readline().strip() == "running"
        first.kill()
    assert said(python(OPEN + show, name)) != busy


@pytest.mark.spark
def test_a_session_that_was_ended_is_opened_again() -> None:
    name = str(uuid.uuid4())
    open_session(session_id=name).stop()

    session = open_session(session_id=name)

    assert one(session) == 1
    assert open_session(session_id=name) is session


@pytest.mark.spark
def test_a_session_that_is_given_is_used() -> None:
    session = open_session()

    assert open_session(session) is session
    assert is_connect(session)


@pytest.mark.spark
def test_a_session_that_reads_sql_in_another_way_is_refused_or_set() -> None:
    """The compiler would read a text in double quotes, which is a column to such a session."""
    setting = "spark.sql.ansi.doubleQuotedIdentifiers"
    session = open_session(session_id=str(uuid.uuid4()))
    session.conf.set(setting, "true")
    with pytest.raises(EnvironmentProblem, match=f"{setting} set to true") as raised:
        open_session(session)
    assert "to false" in raised.value.fix
    read_as_usual(session)
    assert session.conf.get(setting) == "false"
    assert open_session(session) is session


@pytest.mark.spark
@pytest.mark.long
def test_a_classic_session_has_the_same_delta(tmp_path: Path) -> None:
    # A process of its own, since one Python process holds one kind of session.
    program = f"""
import pyarrow as pa
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.compute.spark_relations import AT_ONCE, in_file
from dagster_streamtables.runtime.spark.session import open_session
session = open_session("local[1]")
session.sql("CREATE TABLE delta.`{tmp_path}/t` USING delta AS SELECT 7 AS x")
print(session.sql("SELECT x FROM delta.`{tmp_path}/t`").collect()[0].x, is_connect(session))
print(open_session("local[1]") is session, session.conf.get("spark.sql.shuffle.partitions"))
rows, path = in_file(session, pa.table({{"x": [2] * (AT_ONCE + 1)}}))
print(rows.groupBy().sum("x").first()[0] == 2 * (AT_ONCE + 1), path.unlink())
"""
    assert said(python(program)).splitlines() == ["7 False", "True 2", "True None"]


@pytest.mark.spark
def test_a_delta_table_is_written_and_read(tmp_path: Path) -> None:
    session = open_session()
    table = f"delta.`{tmp_path}/t`"

    session.sql(f"CREATE TABLE {table} USING delta AS SELECT id FROM range(3)")
    session.sql(f"DELETE FROM {table} WHERE id = 1")

    assert session.sql(f"SELECT id FROM {table} ORDER BY id").collect() == [(0,), (2,)]
    assert session.sql(f"SELECT * FROM {table} VERSION AS OF 0").count() == 3


def test_an_address_where_nobody_answers() -> None:
    with pytest.raises(LostSpark, match="no Spark Connect server answers") as raised:
        open_session("sc://127.0.0.1:1")

    assert raised.value.fix


def test_the_jars_are_those_of_the_wheel() -> None:
    assert version("delta-spark") == jars.DELTA_VERSION
    assert all(jar.is_file() for jar in jars.delta_jars())


def test_without_java_the_message_is_a_sentence(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "STREAMTABLES_HOME": str(tmp_path)}

    assert start_of_cli(environment) == (
        "Spark needs Java 17 or newer, and this machine has no Java\n\n"
        "fix: install Java 17 or 21, and put it on PATH or name its folder in JAVA_HOME\n"
    )


def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    environment = {"PATH": "", "JAVA_HOME": str(tmp_path), "STREAMTABLES_HOME": str(tmp_path)}

    complaint = start_of_cli(environment)

    assert complaint.startswith(f"Spark needs Java 17 or newer, but {java} is Java 11\n")


def start_of_cli(environment: dict[str, str]) -> str:
    start = "import sys; from dagster_streamtables.cli import app; app(sys.argv[1:])"
    ended = own_process.python("-c", start, "spark", "start", env=environment)
    assert ended.returncode == 1
    return ended.stderr


def test_each_version_of_spark_has_its_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one for which there is none is refused before anything is downloaded."""
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path))
    asked: list[list[Path]] = []
    monkeypatch.setattr(jars, "_fetch", asked.append)
    for spark in jars.SPARK_VERSIONS:
        monkeypatch.setattr(jars.metadata, "version", lambda _, spark=spark: f"{spark}.9")
        assert jars.delta_jars()[0].name == f"delta-spark_{spark}_2.13-{jars.DELTA_VERSION}.jar"
    monkeypatch.setattr(jars.metadata, "version", lambda _: "5.0.0")
    with pytest.raises(EnvironmentProblem, match=r"pyspark 5\.0\.0 is installed"):
        jars.delta_jars()
    assert len(asked) == len(jars.SPARK_VERSIONS)
