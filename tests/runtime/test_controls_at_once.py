"""What several processes write to one control at once, and what cannot be written, is not lost in
silence."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables import Lake, StreamTable, StreamTablesError
from dagster_streamtables.errors import (
    ConflictingCommit,
    DamagedTable,
    EnvironmentProblem,
    FailedQuery,
    SuspendedTable,
)
from dagster_streamtables.runtime.observe.controls import Control, Controls, FailedRefresh
from dagster_streamtables.runtime.storage import documents
from runtime.failing import EACH, TABLE, fail_often, fail_slowly, processes, wait_for
from runtime.orders import NOWHERE
from traps.faults import read_only

pytestmark = pytest.mark.process

PROCESSES = 6
OLD = Control(
    held="moving house", held_at="2026-01-02T03:04:05+00:00", failed=7,
    failures=(FailedRefresh("2026-01-01T00:00:00+00:00", "the query fails", lasting=True),),
)  # fmt: skip


def fail(controls: Controls, error: Exception | None = None) -> None:
    with suppress(FailedQuery), controls.watching(TABLE):
        raise error or FailedQuery("the query fails")


@pytest.fixture
def controls(tmp_path: Path) -> Controls:
    return Lake(tmp_path / "lake", spark=NOWHERE).controls


def newest(place: Path, name: str) -> Path:
    return max((place / "lake/_streamtables/controls" / name / "_delta_log").glob("*.json"))


def old_file(place: Path, control: Control) -> Path:
    """A control as version 0.1 stored it."""
    file = place / "lake/_streamtables/mart.shares.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(asdict(control)))
    return file


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda controls: controls.suspend(TABLE.name, "moving house"), ("moving house", 3, 3)),
        (lambda controls: controls.resume(TABLE.name), ("", 1, 3)),
        (lambda controls: controls.forget(TABLE.name), ("", 1, 1)),
        (fail, ("", 4, 4)),
    ],
    ids=["suspend", "resume", "forget", "fail"],
)
def test_what_is_written_between_read_and_write_stays(
    act: Callable[[Controls], object], expected: tuple[str, int, int], tmp_path: Path
) -> None:
    root = str(tmp_path / "lake")
    controls = Controls(root)
    fail(controls)
    fail(controls)
    other = processes.Process(target=fail_slowly, args=(root, tmp_path), daemon=True)
    other.start()
    wait_for(tmp_path / "read")
    act(controls)
    (tmp_path / "go").touch()
    other.join()
    known = controls.read(TABLE.name)
    assert (known.held, known.errors, known.failed) == expected
    assert known.error == "SlowError: slow"


def test_of_many_processes_that_fail_at_once_each_is_counted(tmp_path: Path) -> None:
    root, start = str(tmp_path / "lake"), tmp_path / "start"
    names = [f"t{number}" for number in range(PROCESSES)]
    arguments = [(root, start, name) for name in names]
    others = [processes.Process(target=fail_often, args=each, daemon=True) for each in arguments]
    for each in others:
        each.start()
    start.touch()
    for each in others:
        each.join()
    controls = Controls(root)
    assert controls.names() == sorted([TABLE.name, *(f"mart.{name}" for name in names)])
    assert controls.read(TABLE.name).failed == PROCESSES * EACH
    assert all(controls.read(f"mart.{name}").suspension == "for a while" for name in names)


def test_a_note_that_others_always_overtake_is_told(
    controls: Controls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:  # fmt: skip
    other = Controls(str(tmp_path / "lake"))

    class OvertakenError(Exception):
        def __str__(self) -> str:
            fail(other)
            return "overtaken"

    class Reason(str):
        __slots__ = ()

        def __bool__(self) -> bool:
            fail(other)
            return True

    attempts, commit = 0, documents.Document._commit

    def counted(self: documents.Document[Control], *given: Any) -> bool:
        nonlocal attempts
        attempts += self is controls._documents._document(TABLE.name)
        return commit(self, *given)

    monkeypatch.setattr(documents.Document, "_commit", counted)
    monkeypatch.setattr(documents, "_ATTEMPTS", 5)
    with pytest.raises(OvertakenError), controls.watching(TABLE):
        raise OvertakenError
    [told] = caplog.messages
    assert told.startswith(
        "how a refresh of mart.shares ended is not recorded: other processes keep"
    )
    assert attempts == 5
    # Others failed once for each attempt, and again for whoever else asked for the words.
    assert other.read(TABLE.name).failed >= 5
    with pytest.raises(ConflictingCommit, match="other processes keep changing the control"):
        controls.suspend(TABLE.name, Reason("moving house"))
    assert not other.read(TABLE.name).suspension


def test_a_folder_that_cannot_be_written_is_told(
    controls: Controls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fail(controls)
    caplog.set_level(logging.WARNING)
    for name in ("mart.shares", "mart.new"):
        table = StreamTable(name, "SELECT 1 AS n")
        log = tmp_path / "lake/_streamtables/controls/mart.shares/_delta_log"
        with read_only(log if name == "mart.shares" else log.parent.parent):
            with pytest.raises(EnvironmentProblem, match="no permission"):
                controls.suspend(name, "moving house")
            with pytest.raises(FailedQuery, match="the query fails"), controls.watching(table):
                raise FailedQuery("the query fails")
            if name == "mart.shares":
                with controls.watching(table):  # it went well, and must not fail now
                    pass
    assert [each.split(" ended ")[0] for each in caplog.messages] == [
        "how a refresh of mart.shares", "how a refresh of mart.shares", "how a refresh of mart.new",
    ]  # fmt: skip
    assert all("no permission to read or write a file" in each for each in caplog.messages)
    assert controls.names() == ["mart.shares"]


def test_a_control_that_an_older_version_wrote_counts(controls: Controls, tmp_path: Path) -> None:
    file = old_file(tmp_path, OLD)
    assert controls.names() == [TABLE.name]
    assert controls.read(TABLE.name) == controls.snapshot().read(TABLE.name) == OLD
    with pytest.raises(SuspendedTable, match="since 2026-01-02T03:04:05"):
        fail(controls)
    controls.suspend(TABLE.name, "moving again")
    assert controls.read(TABLE.name) == OLD.suspend("moving again")
    assert controls.resume(TABLE.name)
    assert json.loads(file.read_text())["held"] == "moving house", "older processes still see it"
    assert controls.read(TABLE.name).failed == 7
    assert controls.names() == [TABLE.name]


@pytest.mark.parametrize("text", [json.dumps(asdict(OLD)), json.dumps(asdict(OLD))[:-9]])
def test_what_an_older_version_wrote_is_forgotten(
    text: str, controls: Controls, tmp_path: Path
) -> None:
    old_file(tmp_path, OLD).write_text(text)
    assert controls.forget(TABLE.name)
    assert not controls.forget(TABLE.name)
    assert controls.read(TABLE.name) == Control()
    fail(controls)
    assert controls.read(TABLE.name).failed == 1


def test_a_control_that_cannot_be_read_is_named(
    controls: Controls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = old_file(tmp_path, OLD)
    old.write_text(old.read_text()[:-9])
    other = Controls(str(tmp_path / "lake"))
    with pytest.raises(DamagedTable) as raised:
        fail(controls)
    assert raised.value.where == str(old)
    old.unlink()

    for damage in (lambda text: text[:30], lambda text: text.replace("errors", "mistakes")):
        fail(controls)
        place = newest(tmp_path, TABLE.name)
        intact = place.read_text()
        place.write_text(damage(intact))
        for act in (other.suspend, other.resume, other.read):
            with pytest.raises(DamagedTable) as raised:
                act(TABLE.name)
            assert raised.value.where == str(place.parent.parent)
            assert "the stored errors of the table cannot be read" in raised.value.what
        statuses = Lake(tmp_path / "lake", spark=NOWHERE).monitor.status([TABLE])
        assert "cannot be read" in statuses[0].why
        place.write_text(intact)
        with controls.watching(TABLE):
            place.write_text(damage(intact))
        assert "mart.shares" in caplog.messages[-1]
        assert "cannot be read" in caplog.messages[-1]
        place.write_text(intact)


def test_of_a_table_that_never_failed_nothing_is_stored(controls: Controls, tmp_path: Path) -> None:
    with controls.watching(TABLE):
        pass
    assert not controls.resume(TABLE.name)
    assert not controls.forget(TABLE.name)
    assert controls.names() == controls.snapshot().names() == []
    assert not list(tmp_path.iterdir())


def test_a_snapshot_stays_as_it_was(controls: Controls, tmp_path: Path) -> None:
    fail(controls)
    then = controls.snapshot()
    controls.suspend(TABLE.name, "moving house")
    assert then.names() == [TABLE.name]
    assert (then.read(TABLE.name).held, then.read("mart.other")) == ("", Control())
    assert then.of(TABLE).failed == 1
    newest(tmp_path, TABLE.name).write_text("{")
    with pytest.raises(StreamTablesError, match=TABLE.name):
        Controls(str(tmp_path / "lake")).snapshot().read(TABLE.name)
