"""A ledger: a value per commit, and of two writers of one version only one succeeds.

What processes change at once is kept in ledgers; one that cannot be read is told.
"""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from deltalake import DeltaTable, Schema

from dagster_streamtables import Publications
from dagster_streamtables.changes.clock.version_timeline import VersionTimeline
from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.replication.lifecycle.replication_state import Store
from dagster_streamtables.runtime.errors.slot_errors import SlotInUse
from dagster_streamtables.runtime.observe.lease import Heartbeats
from dagster_streamtables.runtime.observe.slot_store import Slots
from dagster_streamtables.runtime.storage.documents import Ledger, LedgerEntry, OvertakenAppend
from runtime.test_slots import slot

HOSTILE = {"text": 'a"\\\n\u2028é', "large": 2**62, "fine": 0.1, "nothing": None, "list": [1, [2]]}
APPENDS = 200
WRITER = f"""
import json, sys
from dagster_streamtables.runtime.storage.documents import Ledger, OvertakenAppend

ledger, done = Ledger(sys.argv[1]), []
while len(done) < {APPENDS}:
    newest = ledger.read()
    try:
        done.append(ledger.append([sys.argv[2], len(done)], newest and newest.version))
    except OvertakenAppend:
        pass
print(json.dumps(done))
"""


@pytest.fixture(params=["folder", "uri"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    place = tmp_path / "some ledger"
    return Ledger(str(place) if request.param == "folder" else f"file://{tmp_path}/ledger")


def test_values_are_numbered_from_zero(ledger: Ledger) -> None:
    assert ledger.read() is None
    assert ledger.append(HOSTILE, None) == 0
    assert ledger.read() == LedgerEntry(0, HOSTILE)
    assert ledger.append(None, 0) == 1
    assert ledger.read() == LedgerEntry(1, None)
    assert (ledger.at(0), ledger.at(2), ledger.at(-1)) == (LedgerEntry(0, HOSTILE), None, None)


def test_only_one_writer_commits_a_version(ledger: Ledger) -> None:
    other = Ledger(ledger.location)
    ledger.append("mine", None)
    with pytest.raises(OvertakenAppend):
        other.append("theirs", None)
    other.append("theirs", 0)
    with pytest.raises(OvertakenAppend):
        ledger.append("late", 0)
    assert ledger.read() == other.read() == LedgerEntry(1, "theirs")


def test_a_gap_is_never_left(ledger: Ledger) -> None:
    ledger.append("first", None)
    for version in (1, 5):
        with pytest.raises(DamagedTable):
            ledger.append("late", version)
        assert ledger.at(version + 1) is None
    assert ledger.read() == LedgerEntry(0, "first")


@pytest.mark.parametrize("form", ["{}", pytest.param("file://{}", marks=pytest.mark.long)])
def test_two_processes_lose_nothing_and_overwrite_nothing(form: str, tmp_path: Path) -> None:
    place = form.format(tmp_path / "raced")
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, place, name], stdout=subprocess.PIPE)
        for name in ("a", "b")
    ]
    of_a, of_b = (json.loads(each.communicate()[0]) for each in started)

    assert sorted(of_a + of_b) == list(range(2 * APPENDS))
    ledger = Ledger(place)
    for name, versions in (("a", of_a), ("b", of_b)):
        found = [ledger.at(version) for version in versions]
        assert found == [LedgerEntry(version, [name, i]) for i, version in enumerate(versions)]
    assert ledger.read() is not None
    assert DeltaTable(place).version() == 2 * APPENDS - 1


def test_of_many_that_create_it_one_does(tmp_path: Path) -> None:
    together = Barrier(8)

    def create(number: int) -> int | None:
        together.wait()
        try:
            Ledger(str(tmp_path / "new")).append(number, None)
        except OvertakenAppend:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        [winner] = [n for n in pool.map(create, range(8)) if n is not None]
    assert Ledger(str(tmp_path / "new")).read() == LedgerEntry(0, winner)


def test_a_reader_sees_what_others_append(tmp_path: Path) -> None:
    reader, writer = (Ledger(str(tmp_path / "l")) for _ in range(2))
    version = None
    for number in range(45):
        version = writer.append(number, version)
        if number % 7 == 0:
            assert reader.read() == LedgerEntry(number, number)


def test_old_commits_are_deleted_and_the_newest_stays(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "l"), kept="interval 0 seconds", checkpoint_every=5)
    version = None
    for number in range(23):
        version = ledger.append(number, version)
    assert ledger.at(0) is None
    assert ledger.at(22) == ledger.read() == Ledger(ledger.location).read() == LedgerEntry(22, 22)
    assert len(list((tmp_path / "l").rglob("*.json"))) < 10
    assert ledger.append("next", 22) == 23


def test_an_own_commit_that_is_reported_as_failed_is_one(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose answer is lost is asked again, and then says that the version exists."""
    commit = Ledger._commit

    def answered_late(*parts: Any) -> None:
        commit(*parts)
        commit(*parts)

    monkeypatch.setattr(Ledger, "_commit", answered_late)
    assert ledger.append("first", None) == 0
    assert ledger.append("second", 0) == 1
    assert ledger.read() == LedgerEntry(1, "second")


def test_a_ledger_in_place_of_another_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "l"))
    ledger.append("old", None)
    assert ledger.read() == LedgerEntry(0, "old")
    (tmp_path / "l").rename(tmp_path / "away")
    assert ledger.read() is None
    Ledger(str(tmp_path / "l")).append("new", None)
    assert ledger.read() == LedgerEntry(0, "new")


def test_a_foreign_commit_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "l"))
    ledger.append("mine", None)
    foreign = DeltaTable(ledger.location)
    schema: Schema = foreign.schema()
    foreign.create_write_transaction([], "append", schema)
    with pytest.raises(DamagedTable, match="cannot be read") as refused:
        ledger.read()
    assert "version 1 is a foreign commit" in refused.value.why


def test_a_file_system_without_links_is_written_by_delta_rs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    ledger = Ledger(str(tmp_path / "ledger"))
    ledger.append(1, None)
    assert (ledger.append(2, 0), ledger.read()) == (1, LedgerEntry(1, 2))
    with pytest.raises(OvertakenAppend):
        ledger.append(3, 0)
    left = {each.suffix for each in (tmp_path / "ledger/_delta_log").iterdir()}
    assert left == {".json"}


def test_delta_rs_reads_what_was_written(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    for version in range(30):
        ledger.append(HOSTILE, version - 1 if version else None)
    table = DeltaTable(ledger.location)
    assert (table.version(), table.to_pyarrow_table().num_rows) == (29, 0)
    assert len(table.history()) == 30


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "slots/a": ("slot", lambda root: Slots(root).find("a")),
    "publications/a": ("publication", lambda root: Publications(root).read("a")),
    "replications/a": ("replication", lambda root: Store(root).find("a")),
    "worker/a": ("heartbeat of a worker", lambda root: Heartbeats(root, name="a").newest()),
    "timeline": ("timeline", lambda root: VersionTimeline(root).last),
}
FOREIGN = [{"format": 99}, {}, "a text", 7, [1]]


@pytest.mark.parametrize("value", FOREIGN, ids=str)
@pytest.mark.parametrize("path", READERS)
def test_a_value_of_something_else_is_told(path: str, value: Any, tmp_path: Path) -> None:
    noun, read = READERS[path]
    place = f"{tmp_path}/_streamtables/{path}"
    Ledger(place).append(value, None)
    with pytest.raises(DamagedTable, match=f"the {noun}.* cannot be read") as told:
        read(str(tmp_path))
    assert told.value.where == place


@pytest.mark.parametrize("path", READERS)
def test_a_torn_commit_is_told(path: str, tmp_path: Path) -> None:
    _, read = READERS[path]
    place = f"{tmp_path}/_streamtables/{path}"
    Ledger(place).append({"format": 1}, None)
    commit = Path(place, "_delta_log", f"{0:020}.json")
    commit.write_bytes(commit.read_bytes()[:100])
    with pytest.raises(DamagedTable, match="the log of a table cannot be read") as told:
        read(str(tmp_path))
    assert told.value.where == place


@pytest.mark.parametrize("left", [timedelta(minutes=1), timedelta(minutes=-1)])
def test_the_reader_of_a_slot_that_an_earlier_version_stored(
    left: timedelta, tmp_path: Path
) -> None:
    slots = Slots(str(tmp_path))
    slots.create(slot())
    ledger = Ledger(f"{tmp_path}/_streamtables/slots/crm")
    entry = ledger.read()
    assert entry is not None
    until = (datetime.now().astimezone() + left).isoformat()
    reader = {"id": "a", "lease_seconds": 60.0, "lease_until": until}
    ledger.append({**entry.value, "reader": reader}, entry.version)
    if left > timedelta():
        with pytest.raises(SlotInUse) as told:
            slots.take("crm", "b", left)
        assert told.value.why.startswith("a reads it, until ")
    taken = slots.take("crm", "b" if left < timedelta() else "a", abs(left))
    assert slots.read("crm") == taken
