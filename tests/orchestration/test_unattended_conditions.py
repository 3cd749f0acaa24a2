"""Automation conditions in the place of the sensor: they decide as it does, so they settle as it
does."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from dagster_streamtables import SensorSettings, StreamTable, StreamTablesResource
from orchestration.conftest import Write
from orchestration.place import Deployment

TABLES = {
    "paid": StreamTable("paid", "SELECT id FROM orders WHERE id > 1", schedule="on change"),
    "totals": StreamTable("totals", "SELECT count(*) AS n FROM paid", schedule="on change"),
}


class Conditional(Deployment):
    """Its conditions request what is due; each evaluation is one tick."""

    at = datetime.now(UTC)

    sensor = SensorSettings(conditions=True)

    def settle(self) -> list[set[str]]:
        ran: list[set[str]] = []
        for _ in range(8):
            self.at += timedelta(seconds=30)
            found = dg.evaluate_automation_conditions(
                self.loaded, self.instance, evaluation_time=self.at
            )
            keys = [dg.AssetKey(name) for name in self.files]
            due = [key for key in keys if found.get_num_requested(key)]
            if not due:
                self.tick()
                return ran
            ran.append({key.to_user_string() for key in due})
            checked = [key for key in due if key.to_user_string() in self.verdicts]
            checks = [dg.AssetCheckKey(key, "is_sound") for key in checked]
            self.execute(dg.RunRequest(asset_selection=due, asset_check_keys=checks))
        raise AssertionError(f"runs follow each other for ever: {ran}")


@pytest.fixture
def place(resource: StreamTablesResource, instance: dg.DagsterInstance, write: Write) -> Deployment:
    write("orders", id=[1, 2])
    return Conditional(resource, instance, dict(TABLES), {"paid": True})


def test_a_source_of_the_same_number_and_rows_of_another_definition(
    place: Deployment, write: Write, tmp_path: Path
) -> None:
    assert place.settle() == [{"paid", "totals"}]
    shutil.rmtree(tmp_path / "public" / "orders")
    write("orders", id=[7, 8])
    assert place.settle() == [{"paid", "totals"}]
    assert list(place.complaints()) == []
    place.resource.lake().refresh(replace(TABLES["paid"], query="SELECT id FROM orders"))
    assert place.settle() == [{"paid", "totals"}]
    assert list(place.complaints()) == []


def test_what_is_below_a_failed_blocking_check_waits(place: Deployment, write: Write) -> None:
    place.settle()
    before = place.stored("totals")
    place.verdicts["paid"] = False
    write("orders", id=[9])
    assert place.settle() == [{"paid", "totals"}]
    assert place.stored("totals") == before
    place.verdicts["paid"] = True
    write("orders", id=[10])
    assert place.settle() == [{"paid", "totals"}]
    assert list(place.complaints()) == []


def test_a_killed_run_and_an_edited_file(place: Deployment, write: Write) -> None:
    place.settle()
    write("orders", id=[9])
    place.kill("paid")
    assert place.settle() == [{"totals"}]
    assert list(place.complaints()) == []
    place.files["paid"] = replace(TABLES["paid"], query="SELECT id FROM orders WHERE id > 2")
    write("orders", id=[11])
    assert len(place.settle()) <= 2
    assert place.settle() == []
    place.reload()
    place.settle()
    assert list(place.complaints()) == []
