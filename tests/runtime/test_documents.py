"""What processes change at once, and what becomes of one of them that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables import Publications
from dagster_streamtables.changes.clock.timeline import Timeline
from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.replication.lifecycle.state import Store
from dagster_streamtables.runtime.errors.slots import SlotInUse
from dagster_streamtables.runtime.observe.heartbeat import Beats
from dagster_streamtables.runtime.observe.slots import Slots
from dagster_streamtables.runtime.storage.ledger import Ledger
from runtime.test_slots import slot

READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "slots/a": ("slot", lambda root: Slots(root).find("a")),
    "publications/a": ("publication", lambda root: Publications(root).read("a")),
    "replications/a": ("replication", lambda root: Store(root).find("a")),
    "worker/a": ("heartbeat of a worker", lambda root: Beats(root, name="a").newest()),
    "timeline": ("timeline", lambda root: Timeline(root).last),
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
