"""The class archive of the local server: made beside it, used by the next one, never relied on."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from dagster_streamtables.runtime.spark import class_dump
from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.local_server import (
    ClassArchive,
    class_archive,
    server_status,
    stop_server,
)
from dagster_streamtables.runtime.spark.session import open_session
from tests.test_server import one, servers_of

pytestmark = pytest.mark.process


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A folder with what tells one build of Java from another."""
    binary = tmp_path / "java/lib/server/libjvm.so"
    binary.parent.mkdir(parents=True)
    binary.write_text("a build")
    return tmp_path / "java"


def _of(java: Path, jars: list[Path]) -> ClassArchive:
    found = class_archive(home(), java, jars)
    assert found is not None
    return found


def test_other_jars_another_java_or_other_pointers_are_another_archive(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STREAMTABLES_SPARK_MEMORY", "2g")
    jar = tmp_path / "delta.jar"
    jar.write_text("1")
    keys = [_of(java, [jar]).key]
    monkeypatch.setenv("STREAMTABLES_SPARK_MEMORY", "4g")
    assert _of(java, [jar]).key == keys[0]

    jar.write_text("2.0")
    keys.append(_of(java, [jar]).key)
    (java / "lib/server/libjvm.so").write_text("another build")
    keys.append(_of(java, [jar]).key)
    monkeypatch.setenv("STREAMTABLES_SPARK_MEMORY", "40g")
    keys.append(_of(java, [jar]).key)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    keys.append(_of(java, [jar]).key)

    assert len({*keys}) == 5


def test_classes_are_listed_until_there_is_an_archive_and_no_more_after_a_failure(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path / "home"))
    found = _of(java, [])

    assert found.java_options() == [f"-XX:DumpLoadedClassList={found.classes}"]
    assert found.making()[-2:] == [str(found.classes), str(found.archive)]

    found.archive.write_text("")
    assert found.java_options() == [f"-XX:SharedArchiveFile={found.archive}"]
    assert found.making() == []

    assert found.discard()
    assert not found.discard()
    found.failure.write_text("no room")
    assert (found.java_options(), found.making()) == ([], [])


def test_an_archive_can_be_declined(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMTABLES_CLASS_ARCHIVE", "false")

    assert class_archive(home(), java, []) is None


def test_of_a_process_that_is_no_server_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "a.classlist").write_text("java/lang/Object\n")

    assert not class_dump.make(tmp_path / "a.classlist", tmp_path / "a.jsa", psutil.Process())
    assert [each.name for each in tmp_path.iterdir()] == ["a.classlist"]


@pytest.mark.spark
@pytest.mark.long
def test_the_next_server_starts_from_the_archive_and_also_from_a_broken_one(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTABLES_CLASS_ARCHIVE", "true")
    assert one(open_session()) == 1
    [classes] = (home() / "classes").glob("*.classlist")
    archive = classes.with_suffix(".jsa")
    (home() / "classes/of_other_jars.jsa").write_text("old")

    assert class_dump.make(classes, archive, _server())
    assert archive.is_file()
    assert not (home() / "classes/of_other_jars.jsa").exists()
    stop_server()

    assert one(open_session()) == 1
    assert str(archive) in Path(f"/proc/{_server().pid}/maps").read_text()
    stop_server()
    assert servers_of(own_home) == []

    for broken in (archive.read_bytes()[:100_000], b"no archive"):
        archive.unlink(missing_ok=True)
        archive.write_bytes(broken)
        assert one(open_session()) == 1
        stop_server()


def _server() -> psutil.Process:
    status = server_status()
    assert status is not None
    return psutil.Process(status.pid)
