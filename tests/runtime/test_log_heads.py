"""The ends of logs, asked for over and over while tables grow, vanish and come back."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from dagster_streamtables.runtime.model.table_state import SourceState, StreamTableState
from dagster_streamtables.runtime.observe import latest_versions
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from runtime.orders import ACCOUNT


def write(folder: Path, *, state: StreamTableState | None = None) -> None:
    metadata = {"userMetadata": state.to_json()} if state else None
    write_deltalake(
        folder,
        pa.table({"id": [1]}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata=metadata),
    )


def at(version: int) -> StreamTableState:
    return StreamTableState(
        "t", 1, "", {"orders": SourceState("id", version, {}, "")}, "", None, "", ACCOUNT
    )


def newest(heads: LatestVersions) -> int | None:
    head = heads.head("t")
    return None if head is None else head.version


def frontier(heads: LatestVersions) -> Mapping[str, int] | None:
    state = heads.state("t")
    return None if state is None else state.frontier


@pytest.fixture(params=["path", "uri"])
def heads(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LatestVersions:
    """Of tables below a folder, and of the same folder as an object store has it."""
    monkeypatch.setattr(latest_versions, "_SURE", 0.0)
    root = f"file://{tmp_path}" if request.param == "uri" else str(tmp_path)
    return LatestVersions(lambda name: f"{root}/{name}")


def test_the_version_is_the_newest_whoever_commits(heads: LatestVersions, tmp_path: Path) -> None:
    assert newest(heads) is None
    for version in range(3):
        write(tmp_path / "t")
        assert newest(heads) == version
    for _ in range(2):
        write(tmp_path / "t")
    assert newest(heads) == 4
    assert {n: h and h.version for n, h in heads.heads(["t", "none", "t"]).items()} == {
        "t": 4,
        "none": None,
    }


def test_a_table_that_was_made_again_is_another_one(heads: LatestVersions, tmp_path: Path) -> None:
    write(tmp_path / "t", state=at(7))
    write(tmp_path / "t")
    assert (newest(heads), frontier(heads)) == (1, {"orders": 7})
    shutil.rmtree(tmp_path / "t")
    assert (newest(heads), frontier(heads)) == (None, None)
    write(tmp_path / "t")
    write(tmp_path / "t")
    write(tmp_path / "t")
    assert (newest(heads), frontier(heads)) == (2, None)


def test_a_new_commit_of_another_table_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    """Within the minute in which an object store is not asked for the last one."""
    heads = LatestVersions(lambda name: f"file://{tmp_path}/{name}")
    write(tmp_path / "t", state=at(7))
    assert (newest(heads), frontier(heads)) == (0, {"orders": 7})
    shutil.rmtree(tmp_path / "t")
    assert newest(heads) == 0
    write(tmp_path / "t")
    write(tmp_path / "t")
    assert (newest(heads), frontier(heads)) == (1, None)


def test_the_frontier_is_in_the_newest_commit_that_carries_one(
    heads: LatestVersions, tmp_path: Path
) -> None:
    write(tmp_path / "t")
    assert frontier(heads) is None
    write(tmp_path / "t", state=at(3))
    write(tmp_path / "t")
    assert frontier(heads) == {"orders": 3}
    write(tmp_path / "t")
    assert frontier(heads) == {"orders": 3}
    write(tmp_path / "t", state=at(4))
    assert frontier(heads) == {"orders": 4}


def test_a_log_without_its_first_commits_is_read(heads: LatestVersions, tmp_path: Path) -> None:
    for version in range(4):
        write(tmp_path / "t", state=at(version))
    DeltaTable(tmp_path / "t").create_checkpoint()
    for version in range(3):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    assert (newest(heads), frontier(heads)) == (3, {"orders": 3})


def test_a_log_that_cannot_be_read_is_left_out_of_many(tmp_path: Path) -> None:
    write(tmp_path / "good")
    (tmp_path / "bad" / "_delta_log" / f"{0:020d}.json").mkdir(parents=True)
    heads = LatestVersions(lambda name: f"{tmp_path}/{name}")
    assert [*heads.heads(["good", "bad"])] == ["good"]
