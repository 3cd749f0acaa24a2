"""Slots: one reader at a time, a position that only moves forward, and what they release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake
from dagster_streamtables.errors import DamagedTable, InvalidDefinition, RefusedOperation
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, MissingSlot, SlotInUse
from dagster_streamtables.runtime.observe.slot_store import Slot, Slots, SlotStatus, VersionHold
from dagster_streamtables.runtime.storage.documents import Ledger

MINUTE, NOTHING = timedelta(minutes=1), timedelta(0)
DAY = timedelta(days=1)


def held(version: int, table: str = "id of orders") -> dict[str, VersionHold]:
    return {"orders": VersionHold("/lake/public/orders", table, version, f"digest {version}")}


def slot(name: str = "crm", *, deadline: timedelta | None = None, version: int = 3) -> Slot:
    return Slot.new(
        name, "orders", fingerprint="of orders", clock="version", held=held(version),
        token="at 3", deadline=deadline,
    )  # fmt: skip


@pytest.fixture(params=["folder", pytest.param("uri", marks=pytest.mark.long)])
def slots(request: pytest.FixtureRequest, tmp_path: Path) -> Slots:
    return Slots(str(tmp_path) if request.param == "folder" else f"file://{tmp_path}")


def again(slots: Slots) -> Slots:
    """The same slots, as another process has them."""
    return Slots(slots._root)


def test_a_slot_is_created_read_and_dropped(slots: Slots) -> None:
    assert (slots.names(), slots.all()) == ([], [])
    made = slots.create(slot())
    slots.create(slot("audit", deadline=DAY))
    assert again(slots).read("crm") == slots.read("crm") == made
    assert slots.names() == again(slots).names() == ["audit", "crm"]
    assert (made.status, made.reason, made.reader) == (SlotStatus.ACTIVE, "", None)

    slots.drop("crm")
    assert slots.names() == again(slots).names() == ["audit"]
    with pytest.raises(MissingSlot, match='there is no slot "crm"') as missing:
        again(slots).read("crm")
    assert "audit" in missing.value.fix
    with pytest.raises(MissingSlot):
        slots.drop("crm")

    anew = slots.create(replace(slot(), token="anew"))
    assert again(slots).read("crm") == anew


def test_a_name_is_the_slots_own(slots: Slots) -> None:
    slots.create(slot())
    with pytest.raises(RefusedOperation, match='slot "crm" already exists') as refused:
        again(slots).create(replace(slot(), relation="customers"))
    assert "it follows orders" in refused.value.why and refused.value.fix


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é", "a.b", "x" * 101, "a\n"])
def test_a_name_is_that_of_a_folder(name: str, slots: Slots) -> None:
    for attempt in (lambda: slots.create(slot(name)), lambda: slots.read(name)):
        with pytest.raises(InvalidDefinition, match="is not a valid name of a slot"):
            attempt()


def test_a_slot_has_one_reader(slots: Slots) -> None:
    slots.create(slot())
    taken = slots.take("crm", "a", MINUTE)
    assert taken.reader is not None
    assert (taken.token, taken.held, taken.reader.id) == ("at 3", held(3), "a")
    for attempt in (
        lambda: again(slots).take("crm", "b", MINUTE),
        lambda: slots.move("crm", "at 9", held(9)),
        lambda: slots.drop("crm"),
    ):
        with pytest.raises(SlotInUse, match='slot "crm" has a reader') as refused:
            attempt()
        assert f"process {os.getpid()} on " in refused.value.why
        assert " reads it, until 20" in refused.value.why
    assert slots.take("crm", "a", MINUTE).reader is not None

    slots.release("crm", "b")
    with pytest.raises(SlotInUse):
        slots.take("crm", "b", MINUTE)
    slots.release("crm", "a")
    found = again(slots).take("crm", "b", MINUTE)
    assert found.reader is not None
    assert found.reader.id == "b"
    slots.drop("crm", even_if_read=True)
    slots.release("crm", "b")
    assert slots.names() == []


def test_the_position_moves_with_what_is_acknowledged(slots: Slots) -> None:
    slots.create(slot())
    slots.take("crm", "a", MINUTE)
    acked = slots.ack("crm", "a", "at 5", held(5))
    assert again(slots).read("crm") == acked
    assert (acked.token, acked.held) == ("at 5", held(5))
    assert acked.acked_at > acked.created_at
    assert slots.ack("crm", "a", "at 5", held(5)).token == "at 5"

    with pytest.raises(RefusedOperation, match='slot "crm" cannot go back') as refused:
        slots.ack("crm", "a", "at 4", held(4))
    assert refused.value.why == "version 5 of orders is acknowledged, and this is version 4"
    assert slots.read("crm").held == held(5)

    recreated = held(0, "another id")
    assert slots.ack("crm", "a", "at 0", recreated).held == recreated


def test_a_reader_that_was_replaced_acknowledges_nothing(slots: Slots) -> None:
    slots.create(slot())
    slots.take("crm", "slow", NOTHING)
    slots.take("crm", "quick", MINUTE)
    for attempt in (
        lambda: slots.ack("crm", "slow", "at 9", held(9)),
        lambda: slots.renew("crm", "slow"),
    ):
        with pytest.raises(SlotInUse, match="no longer read by this reader") as refused:
            attempt()
        assert f"process {os.getpid()} on " in refused.value.why
    slots.ack("crm", "quick", "at 4", held(4))
    slots.release("crm", "quick")
    with pytest.raises(SlotInUse) as refused:
        slots.ack("crm", "slow", "at 9", held(9))
    assert "it was released" in refused.value.why
    assert slots.read("crm").token == "at 4"


def test_a_lease_that_ended_goes_on_if_nobody_else_came(slots: Slots) -> None:
    slots.create(slot())
    slots.take("crm", "a", NOTHING)
    assert slots.ack("crm", "a", "at 4", held(4)).token == "at 4"


def test_a_lease_is_renewed_for_as_long_as_it_was(slots: Slots) -> None:
    slots.create(slot())
    first = slots.take("crm", "a", MINUTE).reader
    second = slots.renew("crm", "a").reader
    third = slots.ack("crm", "a", "at 4", held(4)).reader
    assert first and second and third
    assert first.until < second.until < third.until
    assert third.until - datetime.now(UTC) <= MINUTE


def test_a_slot_of_another_relation_is_refused(slots: Slots) -> None:
    slots.create(slot())
    with pytest.raises(RefusedOperation, match='slot "crm" follows another relation') as refused:
        slots.take("crm", "a", MINUTE, fingerprint="of customers")
    assert "orders" in refused.value.why and refused.value.fix
    assert slots.read("crm").reader is None
    assert slots.take("crm", "a", MINUTE, fingerprint="of orders").reader


def test_a_slot_is_moved_by_hand_in_both_directions(slots: Slots) -> None:
    slots.create(slot())
    slots.take("crm", "gone", NOTHING)
    assert slots.move("crm", "at 9", held(9)).held == held(9)
    moved = slots.move("crm", "at 1", held(1))
    assert (moved.token, moved.held, moved.reader) == ("at 1", held(1), None)
    with pytest.raises(SlotInUse):
        slots.ack("crm", "gone", "at 5", held(5))


def test_a_lost_slot_is_not_read_until_somebody_chooses(slots: Slots) -> None:
    slots.create(slot())
    slots.take("crm", "a", MINUTE)
    slots.invalidate("crm", "a vacuum was forced")
    slots.invalidate("crm", "a later reason")
    for attempt in (
        lambda: slots.take("crm", "a", MINUTE),
        lambda: slots.ack("crm", "a", "at 5", held(5)),
        lambda: slots.renew("crm", "a"),
    ):
        with pytest.raises(LostSlot, match='slot "crm" is lost') as lost:
            attempt()
        assert lost.value.why == "a vacuum was forced"

    anew = slots.take("crm", "a", MINUTE, restart=True)
    assert (anew.status, anew.reason, anew.token, anew.held) == (SlotStatus.ACTIVE, "", "", {})
    assert slots.ack("crm", "a", "at 7", held(7)).held == held(7)
    kept = slots.take("crm", "a", MINUTE, restart=True)
    assert (kept.token, kept.held) == ("at 7", held(7))

    slots.invalidate("crm", "again")
    slots.release("crm", "a")
    moved = slots.move("crm", "at 8", held(8))
    assert (moved.status, moved.reason, moved.held) == (SlotStatus.ACTIVE, "", held(8))


def test_a_slot_that_nobody_uses_is_let_go_at_its_deadline(slots: Slots) -> None:
    made = slots.create(slot(deadline=DAY))
    slots.create(slot("forever"))
    end = made.created_at + DAY
    assert made.expires_at == end
    assert made.expires_within(MINUTE, end - MINUTE)
    assert not made.expires_within(MINUTE, end - 2 * MINUTE)
    assert slots.expire() == slots.expire(end - MINUTE) == []

    [lost] = slots.expire(end)
    assert (lost.name, lost.status, lost.token) == ("crm", SlotStatus.LOST, "at 3")
    assert "its deadline has passed" in lost.reason
    assert again(slots).read("crm") == lost
    assert (lost.expires_at, slots.expire(end)) == (None, [])


def test_using_a_slot_postpones_its_deadline(slots: Slots) -> None:
    end = slots.create(slot(deadline=DAY)).expires_at
    for use in (
        lambda: slots.take("crm", "a", NOTHING),
        lambda: slots.ack("crm", "a", "at 4", held(4)),
        lambda: slots.renew("crm", "a"),
        lambda: slots.release("crm", "a"),
        lambda: slots.move("crm", "at 5", held(5)),
    ):
        use()
        before, end = end, slots.read("crm").expires_at
        assert before and end and end > before
    reader = slots.take("crm", "a", 2 * DAY).reader
    assert reader is not None
    assert slots.read("crm").expires_at == reader.until


def test_of_many_readers_one_takes_the_slot(tmp_path: Path) -> None:
    Slots(str(tmp_path)).create(slot())
    together = Barrier(8)

    def take(reader: str) -> str | None:
        mine = Slots(str(tmp_path))
        together.wait()
        try:
            mine.take("crm", reader, MINUTE)
        except SlotInUse:
            return None
        return reader

    with ThreadPoolExecutor(8) as pool:
        [winner] = [each for each in pool.map(take, map(str, range(8))) if each is not None]
    reader = Slots(str(tmp_path)).read("crm").reader
    assert reader is not None
    assert reader.id == winner


READER = """
import json, sys
from datetime import timedelta
from dagster_streamtables.runtime.errors.slot_errors import SlotInUse
from dagster_streamtables.runtime.observe.slot_store import Slots, VersionHold

root, me = sys.argv[1:]
slots, acked = Slots(root), []
while True:
    try:
        at = int(slots.take("crm", me, timedelta(milliseconds=5)).token)
        if at >= 150:
            break
        for to in range(at + 1, at + 4):
            slots.ack("crm", me, str(to), {"orders": VersionHold("/o", "id", to, "")})
            acked.append(to)
    except SlotInUse:
        pass
print(json.dumps(acked))
"""


@pytest.mark.process
def test_processes_that_take_over_from_one_another_skip_and_repeat_nothing(tmp_path: Path) -> None:
    Slots(str(tmp_path)).create(replace(slot(version=0), token="0"))
    started = [
        subprocess.Popen([sys.executable, "-c", READER, tmp_path, name], stdout=subprocess.PIPE)
        for name in ("a", "b")
    ]
    acked = [json.loads(each.communicate()[0]) for each in started]
    together = sorted(acked[0] + acked[1])
    assert together == list(range(1, len(together) + 1))
    assert len(together) >= 150
    assert int(Slots(str(tmp_path)).read("crm").token) == len(together)


def test_what_is_held_comes_from_a_log(tmp_path: Path) -> None:
    place = str(tmp_path / "orders")
    write_deltalake(place, pa.table({"id": [1]}))
    log = Logs().newest(place)
    assert log is not None
    found = VersionHold.of(log)
    assert log.has(found.source_state.snapshot(found.location))
    assert found.committed_at is not None
    assert found.committed_at.timestamp() == log.committed_at


def test_what_changes_nothing_is_not_committed(slots: Slots) -> None:
    slots.create(slot())
    slots.invalidate("crm", "gone")
    slots.invalidate("crm", "again")
    slots.release("crm", "nobody")
    slots.expire()
    newest = Ledger(f"{slots._root}/_streamtables/slots/crm").read()
    assert newest is not None
    assert newest.version == 1


def test_a_slot_in_an_unknown_format_is_damaged(slots: Slots) -> None:
    slots.create(slot())
    Ledger(f"{slots._root}/_streamtables/slots/crm").append({**slot().to_json(), "format": 99}, 0)
    for attempt in (lambda: slots.read("crm"), slots.all):
        with pytest.raises(DamagedTable) as damaged:
            attempt()
        assert "it is not in the format 1" in damaged.value.why


def test_slots_of_a_lake_leave_its_tables_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.slots.create(slot())
    assert lake.slots.names() == ["crm"]
    assert lake.retention.stream_tables() == []
    assert lake.controls.names() == []
    assert lake.monitor.status() == []
