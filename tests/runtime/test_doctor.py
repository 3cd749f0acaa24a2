"""What an erased commit leaves behind is found, and nothing is found in a healthy table."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.doctor.examination import examine_table
from dagster_streamtables.runtime.doctor.findings import Examination, Finding, Trace, Verdict
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from qa.object_store.store import BUCKET, audited_store
from runtime.doctor_tables import (
    BY_SPARK,
    FEED,
    HEALTHY,
    actions,
    append,
    cleaned,
    copied,
    erase,
    file_of,
    history,
    in_disorder,
    put,
    rows,
    say,
)

LATER = 7200
"""Seconds until no writer of the test may run any more."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "t"


def look(place: Path, later: float = LATER) -> Examination:
    return examine_table(str(place), now=time.time() + later)


def found(place: Path, trace: Trace) -> Finding:
    """The only finding of a kind."""
    [one] = [each for each in look(place).findings if each.trace is trace]
    return one


def span(finding: Finding) -> tuple[int, int]:
    return finding.first, finding.last


@pytest.mark.parametrize("more", [{}, {"partition_by": ["part"]}], ids=["flat", "partitioned"])
@pytest.mark.parametrize("version", [1, 3, 4])
def test_data_files_of_an_erased_commit(place: Path, version: int, more: Any) -> None:
    history(place, **more)
    lost = [each["add"]["path"] for each in actions(place, version) if "add" in each]
    erase(place, version)

    seen = look(place)

    [one] = seen.findings
    assert seen.verdict is Verdict.POSSIBLE
    assert (one.trace, span(one), one.count) == (Trace.DATA_FILE, (version, version), len(lost))
    assert {Path(each).name for each in one.examples} == {Path(each).name for each in lost}


def test_files_of_a_write_that_may_still_run_are_no_trace(place: Path) -> None:
    history(place)
    erase(place, 3)
    assert (look(place, 0).findings, look(place, 0).recent) == ((), 1)


def test_change_files_of_an_erased_commit(place: Path) -> None:
    append(place, 1, 2, 3, configuration=FEED)
    DeltaTable(place).update(predicate="id = 1", updates={"id": "100"})
    append(place, 4)
    erase(place, 1)
    one = found(place, Trace.CHANGE_FILE)
    assert (span(one), one.count, one.sure) == ((1, 1), 1, False)
    assert span(found(place, Trace.DATA_FILE)) == (1, 1)

    say(place, 1, operationMetrics={"numAddedChangeFiles": "1"})
    assert found(place, Trace.CHANGE_FILE).sure, "the commit has lost its own"


def test_transactions_that_repeat(place: Path) -> None:
    for number in (1, 2, 2, 5, 4):
        append(
            place, number, commit_properties=CommitProperties(
                app_transactions=[Transaction("app", number), Transaction("of", len("of") * number)]
            ),
        )  # fmt: skip
    seen = [each for each in look(place).findings if "app:" in each.examples[0]]
    assert [(each.trace, span(each), each.sure) for each in seen] == [
        (Trace.TRANSACTION, (1, 2), False), (Trace.TRANSACTION, (3, 4), False),
    ]  # fmt: skip


def test_a_transaction_that_was_erased_and_made_again(place: Path) -> None:
    def append_once(number: int) -> None:
        properties = CommitProperties(app_transactions=[Transaction("app", number)])
        append(place, number, commit_properties=properties)

    for number in range(4):
        append_once(number)
    erase(place, 2)
    append_once(3)
    assert span(found(place, Trace.TRANSACTION)) == (3, 4)


def checksum(place: Path, version: int, **more: Any) -> None:
    table = DeltaTable(place, version=version)
    sizes = pa.table(table.get_add_actions()).column("size_bytes").to_pylist()
    said = {"numFiles": len(sizes), "tableSizeBytes": sum(sizes), "numMetadata": 1} | more
    file_of(place, version, "crc").write_text(json.dumps(said))


def test_checksums_that_count_an_erased_commit(place: Path) -> None:
    history(place, 6)
    for version in range(6):
        checksum(place, version)
    assert look(place).verdict is Verdict.NONE

    erase(place, 3, lambda there: DeltaTable(there).delete("id = 1"))

    one = found(place, Trace.CHECKSUM)
    assert (span(one), one.sure) == ((3, 3), True)
    assert "numFiles is +1 against the commits" in one.examples


def test_a_checksum_of_another_commit_or_schema(place: Path) -> None:
    history(place)
    say(place, 3, txnId="mine")
    checksum(place, 3, txnId="mine")
    assert look(place).verdict is Verdict.NONE
    checksum(place, 3, txnId="yours")
    assert span(found(place, Trace.CHECKSUM)) == (3, 3)
    [metadata] = [each["metaData"] for each in actions(place, 0) if "metaData" in each]
    checksum(place, 3, metadata=metadata)
    assert look(place).verdict is Verdict.NONE
    checksum(place, 3, metadata=metadata | {"partitionColumns": ["part"]})
    assert "another schema or other properties" in found(place, Trace.CHECKSUM).examples


def test_a_checkpoint_that_has_the_files_of_an_erased_commit(place: Path) -> None:
    history(place, 6)
    DeltaTable(place, version=2).create_checkpoint()
    DeltaTable(place).create_checkpoint()
    append(place, 7)
    assert look(place).verdict is Verdict.NONE

    erase(place, 4)

    one = found(place, Trace.CHECKPOINT)
    assert one.sure
    assert one.first <= 4 <= one.last <= 5
    assert one.count == 2, "the file that is lost, and the file that took its place"
    DeltaTable(place).create_checkpoint()
    assert found(place, Trace.CHECKPOINT) == one, "the next checkpoint begins with this one"


def test_a_hint_that_counts_other_files_than_its_checkpoint(place: Path) -> None:
    history(place)
    DeltaTable(place).create_checkpoint()
    hint = place / "_delta_log" / "_last_checkpoint"
    hint.write_text(json.dumps(json.loads(hint.read_text()) | {"numOfAddFiles": 6}))
    assert (span(found(place, Trace.CHECKPOINT)), look(place).verdict) == ((4, 4), Verdict.SURE)


def test_a_file_that_is_removed_and_that_no_commit_added(place: Path) -> None:
    history(place)
    DeltaTable(place).optimize.compact()
    erase(place, 2)
    one = found(place, Trace.ACTION)
    assert (span(one), one.sure, one.count) == ((2, 3), True, 1)


def test_a_file_that_is_added_and_was_never_removed(place: Path) -> None:
    history(place, 3)
    DeltaTable(place).delete("id = 1")
    DeltaTable(place).restore(2)
    assert look(place).verdict is Verdict.NONE
    erase(place, 3)
    seen = [each for each in look(place).findings if each.trace is Trace.ACTION]
    assert {(span(each), each.sure) for each in seen} == {((0, 3), True), ((3, 3), True)}


def test_a_commit_that_is_younger_than_the_next(place: Path) -> None:
    history(place)
    erase(place, 2)
    now = time.time()
    os.utime(file_of(place, 2), (now, now + 12))
    assert span(found(place, Trace.TIME)) == (2, 2)
    assert span(found(place, Trace.DATA_FILE)) == (2, 2), "of the same commit"


def test_in_commit_timestamps_that_go_back(place: Path) -> None:
    history(place)
    for version, stamp in enumerate((10, 20, 40, 30, 50)):
        say(place, version, inCommitTimestamp=stamp)
    assert span(found(place, Trace.TIME)) == (2, 3)


def test_a_gap(place: Path) -> None:
    history(place, 7)
    file_of(place, 3).unlink()
    file_of(place, 4).unlink()
    assert span(found(place, Trace.GAP)) == (3, 4)
    assert look(place).verdict is Verdict.SURE


@pytest.mark.parametrize("make", HEALTHY, ids=lambda make: make.__name__)
@pytest.mark.parametrize("spark", [False, True], ids=["by delta-rs", "as by Spark"])
def test_a_healthy_table_has_no_trace(
    place: Path, make: Callable[[Path], None], spark: bool
) -> None:
    """Also if any commit of its could have erased another."""
    make(place)
    for path in sorted(place.glob("_delta_log/*.json")) if spark else ():
        times = path.stat()
        say(place, int(path.stem), **BY_SPARK)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    seen = look(place)

    assert (seen.findings, seen.verdict) == ((), Verdict.NONE)


def test_only_a_commit_that_may_erase_is_in_doubt_by_its_time(place: Path) -> None:
    in_disorder(place)
    assert look(place).findings == ()


def test_strays_of_a_copy_cannot_be_dated(tmp_path: Path) -> None:
    copied(tmp_path / "t")
    pq.write_table(rows(1), tmp_path / "t" / "part-stray.parquet")
    assert span(found(tmp_path / "t", Trace.DATA_FILE)) == (0, 5)
    DeltaTable(tmp_path / "t").create_checkpoint()
    file_of(tmp_path / "t", 0).unlink()
    assert (look(tmp_path / "t").findings, look(tmp_path / "t").unjudged) == ((), 1)


def action(kind: str, vector: str | None, **more: Any) -> dict[str, Any]:
    told = {"storageType": "u", "pathOrInlineDv": vector, "offset": 1} if vector else None
    return {
        kind: {"path": "f.parquet", "size": 1, "deletionVector": told, "dataChange": True} | more
    }


def test_deletion_vectors_and_statistics_name_files_again(place: Path) -> None:
    append(place, 1)
    put(place, 1, [action("add", None)])
    put(place, 2, [action("add", "one"), action("remove", None)])
    put(place, 3, [action("remove", "one"), action("add", "two")])
    put(place, 4, [action("add", "two", dataChange=False, stats="{}")])
    assert look(place).findings == ()
    put(place, 5, [action("remove", "three")])
    one = found(place, Trace.ACTION)
    assert (span(one), one.sure) == ((0, 4), True)


def test_what_cannot_be_judged_is_counted(place: Path) -> None:
    cleaned(place)
    seen = look(place)
    assert (seen.unjudged, seen.aborted, seen.recent) == (4, 0, 0)
    assert seen.oldest > 0


def test_a_writer_that_lost_a_race_leaves_no_trace_between_commits_of_delta_rs(place: Path) -> None:
    history(place, 2)
    pq.write_table(rows(1), place / "part-of-a-loser.parquet")
    assert look(place).recent == 1, "no commit came after it"
    append(place, 3)
    seen = look(place)
    assert (seen.findings, seen.aborted, seen.recent) == ((), 1, 0)

    say(place, 2, **BY_SPARK)
    assert span(found(place, Trace.DATA_FILE)) == (2, 2)


def test_absolute_paths_are_those_of_the_table(tmp_path: Path) -> None:
    place, link = tmp_path / "t", tmp_path / "link"
    history(place, 3)
    say(place, 2, **BY_SPARK)
    said = actions(place, 2)
    for each in said:
        if "add" in each:
            each["add"]["path"] = f"file:{place}/{each['add']['path']}"
    put(place, 2, said)
    link.symlink_to(place)
    assert look(place).findings == look(link).findings == ()


def test_what_is_no_table_or_no_log(place: Path) -> None:
    with pytest.raises(MissingSource, match="there is no table"):
        look(place)
    history(place)
    file_of(place, 2).write_text("{torn")
    with pytest.raises(DamagedTable, match="cannot be read"):
        look(place)


def test_a_put_that_erases_a_commit_in_an_object_store(tmp_path: Path) -> None:
    with audited_store(tmp_path) as store:
        store.make(BUCKET)
        place, options = f"{store.root('lake')}/t", dict(store.options)
        for n in range(4):
            write_deltalake(place, rows(n), mode="append", storage_options=options)
        seen = examine_table(place, "t", options, now=time.time() + LATER)
        assert (seen.table, seen.newest, seen.findings) == ("t", 3, ())

        info = {"timestamp": int(time.time() * 1000), **BY_SPARK}
        key = f"lake/t/_delta_log/{2:020d}.json"
        store.client.put_object(Bucket=BUCKET, Key=key, Body=json.dumps({"commitInfo": info}))

        [one] = examine_table(place, "t", options, now=time.time() + LATER).findings
        assert (one.trace, span(one), one.count) == (Trace.DATA_FILE, (2, 2), 1)
        with pytest.raises(MissingSource):
            examine_table(f"{store.root('lake')}/none", "none", options)


@pytest.mark.long
def test_a_table_of_spark_has_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    """Deletion vectors, column mapping, random prefixes, checkpoints of both versions, checksums:
    it deletes all rows of files, which leaves vectors and empty files that no commit names."""
    name, clone, second = (f"delta.`{tmp_path}/{each}`" for each in ("t", "clone", "v2"))
    properties = {
        "delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "3",
        "delta.enableInCommitTimestamps": "true",
    }  # fmt: skip
    told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    for statement in (
        f"CREATE TABLE {name} (id BIGINT, part STRING) USING delta PARTITIONED BY (part) "
        f"TBLPROPERTIES ({told})",
        *(
            f"INSERT INTO {name} SELECT id, concat('a ', id % 2, '%/é') "
            f"FROM range({n * 10}, {n * 10 + 10})"
            for n in range(2)
        ),
        f"DELETE FROM {name} WHERE id % 3 = 0",
        f"DELETE FROM {name} WHERE id >= 10",
        f"UPDATE {name} SET part = 'new' WHERE id < 5",
        f"OPTIMIZE {name}",
        f"RESTORE TABLE {name} TO VERSION AS OF 2",
        f"DELETE FROM {name} WHERE id % 5 = 0",
        f"REORG TABLE {name} APPLY (PURGE)",
        f"ALTER TABLE {name} RENAME COLUMN part TO p",
        f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        f"CREATE TABLE {clone} SHALLOW CLONE {name}",
        f"DELETE FROM {clone} WHERE id % 7 = 0",
        f"CREATE TABLE {second} (id BIGINT) USING delta TBLPROPERTIES "
        "('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')",
        f"INSERT INTO {second} VALUES (1)",
        f"INSERT INTO {second} VALUES (2)",
        f"DELETE FROM {second} WHERE id = 2",
        f"INSERT INTO {second} VALUES (3)",
    ):
        spark.sql(statement)

    for each in ("t", "clone", "v2"):
        assert look(tmp_path / each).findings == (), each
    assert list(tmp_path.glob("t/_delta_log/*.checkpoint.parquet"))
    assert list(tmp_path.glob("v2/_delta_log/_sidecars/*.parquet"))
    assert list(tmp_path.glob("t/_delta_log/*.crc"))

    write_deltalake(tmp_path / "v2", rows(4).select(["id"]), mode="append")
    lost = DeltaTable(tmp_path / "v2").version()
    spark.sql(f"INSERT INTO {second} VALUES (5)")
    # What Spark has put over it: its own next commit.
    shutil.copy2(file_of(tmp_path / "v2", lost + 1), file_of(tmp_path / "v2", lost))
    for each in tmp_path.glob(f"v2/_delta_log/{lost + 1:020d}.*"):
        each.unlink()
    one = found(tmp_path / "v2", Trace.CHECKPOINT)
    assert (span(one), one.sure) == ((lost, lost), True), "delta-rs has written a checkpoint"
