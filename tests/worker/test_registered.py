"""Over a folder of `.sql` files, a worker drives the replications that the lake knows, too."""

from __future__ import annotations

from pathlib import Path

from dagster_streamtables import Replications
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.lake_workload import Registry, of_folder
from dagster_streamtables.worker.loop import Worker
from dagster_streamtables.worker.reload import Reload
from orchestration.replicated import Origin
from worker.conftest import rows, settle, turns

NODE = "replication shop"


def declared(folder: Path, schedule: str) -> str:
    (folder / "mart").mkdir(parents=True, exist_ok=True)
    query = "SELECT count(*) AS n FROM raw.orders"
    (folder / "mart/totals.sql").write_text(f"-- schedule: {schedule}\n{query}\n")
    return str(folder)


def without_spark(folder: Path) -> tuple[Origin, Lake]:
    (folder / "lake").mkdir()
    return Origin(folder / "origin"), Lake(folder / "lake")


def test_a_commit_of_the_publisher_reaches_the_table_that_reads_it(
    tmp_path: Path, lake: Lake
) -> None:
    origin, folder = Origin(tmp_path / "origin"), declared(tmp_path / "tables", "on change")
    Replications(lake).create(origin.replication())
    worker = Worker(of_folder(folder, lake))
    settle(worker)
    assert rows(lake, "mart.totals") == [{"n": 2}]

    origin.add("sales.orders", id=[3], v=["c"])
    turns(worker, lambda: rows(lake, "mart.totals") == [{"n": 3}])
    assert worker.finish()


def test_it_is_as_fresh_as_its_readers_need_and_follows_at_once_without_any(tmp_path: Path) -> None:
    origin, lake = without_spark(tmp_path)
    Replications(lake).create(origin.replication())

    def schedule(reader: str) -> str:
        found = of_folder(declared(tmp_path / "tables", reader), lake).nodes.schedules[NODE]
        assert found is not None
        return found.text

    assert schedule("5m") == "5m"
    assert schedule("0 6 * * *") == "on change"


def test_one_that_is_created_or_altered_meanwhile_is_driven_as_it_is_now(tmp_path: Path) -> None:
    origin, lake = without_spark(tmp_path)
    folder = declared(tmp_path / "tables", "on change")
    first = of_folder(folder, lake)
    assert not first.nodes.replications
    reload = Reload(first, lambda: of_folder(folder, lake), [], 0.01, beside=Registry(lake).stamps)
    assert not reload.look()

    Replications(lake).create(origin.replication())
    assert reload.look()
    new = reload.take()
    assert new is not None
    assert [*new.nodes.replications] == [NODE]
    assert new.nodes.reads["mart.totals"] == (NODE,)
    assert not reload.look()

    Replications(lake).drop("shop")
    assert reload.look()
    new = reload.take()
    assert new is not None
    assert not new.nodes.replications
