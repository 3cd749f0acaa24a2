"""Tables with a history for `streamtables doctor`: healthy ones, and one whose commit is erased."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    Schema,
    Transaction,
    convert_to_deltalake,
    write_deltalake,
)

from changes.table import FEED

BY_SPARK = {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [f"a {i % 2}%/é" for i in ids]})


def append(place: Path, *ids: int, **more: Any) -> None:
    write_deltalake(place, rows(*ids), mode="append", **more)


def history(place: Path, commits: int = 5, **more: Any) -> None:
    for version in range(commits):
        append(place, version, 10 + version, **more)


def file_of(place: Path, version: int, kind: str = "json") -> Path:
    return place / "_delta_log" / f"{version:020d}.{kind}"


def actions(place: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file_of(place, version).read_text().splitlines()]


def put(place: Path, version: int, said: list[dict[str, Any]]) -> None:
    file_of(place, version).write_text("\n".join(map(json.dumps, said)) + "\n")


def say(place: Path, version: int, **info: Any) -> None:
    said = actions(place, version)
    for each in said:
        if "commitInfo" in each:
            each["commitInfo"] |= info
    put(place, version, said)


def erase(
    place: Path, version: int, write: Callable[[Path], object] = lambda place: append(place, 1000)
) -> None:
    """Put another commit in place of one, by a writer that knew the versions before it."""
    other = place.with_name(f"{place.name}-of-spark")
    shutil.copytree(place, other)
    newest = DeltaTable(place).version()
    for each in range(version, newest + 1):
        file_of(other, each).unlink()
    for each in (*other.glob("_delta_log/*checkpoint*"), *other.glob("_delta_log/*.crc")):
        each.unlink()
    write(other)
    say(other, version, **BY_SPARK)
    said = actions(other, version)
    for each in said:
        for kind in {"add", "cdc"} & each.keys():
            path = unquote(each[kind]["path"])
            (place / path).parent.mkdir(exist_ok=True)
            shutil.copy2(other / path, place / path)
    put(place, version, said)
    shutil.rmtree(other)


# What is no trace


def partitioned(place: Path) -> None:
    history(place, 12, partition_by=["part"])


def overwritten(place: Path) -> None:
    history(place, 3)
    write_deltalake(place, rows(1, 2), mode="overwrite")
    write_deltalake(place, rows(1, 1), mode="overwrite", predicate="id = 1")


def merged(place: Path) -> None:
    history(place, 3, configuration=FEED, partition_by=["part"])
    table = DeltaTable(place)
    table.merge(
        rows(1, 77), "s.id = t.id", "s", "t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    table.update(predicate="id = 2", updates={"id": "200"})
    table.delete("id = 200")


def compacted(place: Path) -> None:
    history(place, 6)
    DeltaTable(place).optimize.compact()
    DeltaTable(place).optimize.z_order(["id"])
    append(place, 99)


def vacuumed(place: Path) -> None:
    compacted(place)
    DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    append(place, 100)


def restored(place: Path) -> None:
    merged(place)
    DeltaTable(place).restore(1)
    append(place, 100)
    DeltaTable(place).restore(4)


def with_checkpoints(place: Path) -> None:
    history(place, 3)
    for _ in range(3):
        DeltaTable(place).create_checkpoint()
        DeltaTable(place).delete("id < 2")
        append(place, 1, 50)
    DeltaTable(place).optimize.compact()


def cleaned(place: Path) -> None:
    """The log of the files that were removed first is gone; the files are not."""
    old = {"delta.logRetentionDuration": "interval 0 days"}
    history(place, 4, configuration=old | {"delta.deletedFileRetentionDuration": "interval 0 days"})
    DeltaTable(place).optimize.compact()
    append(place, 98)
    time.sleep(0.01)
    DeltaTable(place).create_checkpoint()
    DeltaTable(place).cleanup_metadata()
    append(place, 99)
    assert not file_of(place, 0).exists()


def altered(place: Path) -> None:
    history(place, 3)
    DeltaTable(place).alter.add_columns([Field("more", "string", nullable=True)])  # type: ignore[list-item]
    DeltaTable(place).alter.set_table_properties(FEED)
    write_deltalake(place, rows(9), mode="overwrite", schema_mode="overwrite")


def converted(place: Path) -> None:
    for part in (0, 1):
        folder = place / f"part={part}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [part]}), folder / "part-00000.parquet")
    parts = Schema([Field("part", "integer")])  # type: ignore[list-item]
    convert_to_deltalake(place, partition_by=parts, partition_strategy="hive")
    DeltaTable(place).delete("id = 1")


def empty(place: Path) -> None:
    DeltaTable.create(place, Schema.from_arrow(rows().schema))


def replaced(place: Path) -> None:
    """A copy that begins anew repeats its numbers."""
    for number in (3, 4, 1):
        properties = CommitProperties(app_transactions=[Transaction("app", number)])
        write_deltalake(place, rows(number), mode="overwrite", commit_properties=properties)


def copied(place: Path) -> None:
    """From a backup: no file is as old as its commit says, and none in its order."""
    original = place.with_name("original")
    history(original, 6)
    shutil.copytree(original, place, copy_function=shutil.copyfile)
    for version in range(6):
        [info] = (each["commitInfo"] for each in actions(place, version) if "commitInfo" in each)
        say(place, version, timestamp=info["timestamp"] - 10**9, **BY_SPARK)
        os.utime(file_of(place, version), (0, time.time() - 60 * version))


def nested(place: Path) -> None:
    history(place, 2)
    history(place / "inside", 2)
    erase(place / "inside", 1)
    append(place, 5)


def beside(place: Path) -> None:
    """What else may be in a folder of a table."""
    history(place, 2)
    for folder in ("_staged", ".hidden", "_intermediate"):
        (place / folder).mkdir()
        pq.write_table(rows(1), place / folder / "part-0.parquet")
    (place / "notes.txt").write_text("mine")
    pq.write_table(rows(), place / "part-without-rows.parquet")
    (place / "part-torn.parquet").write_bytes(b"PAR1")
    (place / "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin").write_bytes(b"1")
    append(place, 5)
    say(place, 2, **BY_SPARK)


def cleaned_unevenly(place: Path) -> None:
    """By a rule of the store, which deletes files by their age."""
    with_checkpoints(place)
    file_of(place, 1).unlink()


def in_disorder(place: Path) -> None:
    """The clock of a network drive went back; delta-rs puts no commit over another."""
    history(place, 4)
    now = time.time()
    os.utime(file_of(place, 1), (now, now + 60))


HEALTHY = (
    history, partitioned, overwritten, merged, compacted, vacuumed, restored, with_checkpoints,
    cleaned, altered, converted, empty, replaced, copied, nested, beside, cleaned_unevenly,
)  # fmt: skip
