"""A log that follows an earlier one is that of a table that is opened anew."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.log_folder import RemoteLog
from dagster_streamtables.runtime.delta.logs import Logs
from qa.object_store.store import BUCKET, AuditedStore, audited_store

Change = Callable[[AuditedStore, str, Random], None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedStore]:
    with audited_store(tmp_path_factory.mktemp("store")) as store:
        store.make(BUCKET)
        yield store


def rows(random: Random, **more: Any) -> pa.Table:
    ids = [random.randrange(100) for _ in range(3)]
    return pa.table({"id": ids, "name": [str(each) for each in ids], **more})


def opened(store: AuditedStore, place: str) -> DeltaTable:
    return DeltaTable(place, storage_options=dict(store.options))


def append(store: AuditedStore, place: str, random: Random) -> None:
    write_deltalake(place, rows(random), mode="append", storage_options=dict(store.options))


def refresh(store: AuditedStore, place: str, random: Random) -> None:
    made = Transaction(f"app {random.randrange(2)}", random.randrange(1000))
    write_deltalake(
        place, rows(random), mode="append", storage_options=dict(store.options),
        commit_properties=CommitProperties(app_transactions=[made]),
    )  # fmt: skip


def delete(store: AuditedStore, place: str, random: Random) -> None:
    opened(store, place).delete(f"id < {random.randrange(50)}")


def merge(store: AuditedStore, place: str, random: Random) -> None:
    source = rows(random).group_by("id", use_threads=False).aggregate([("name", "min")])
    source = source.rename_columns(["id", "name"])
    merger = opened(store, place).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_delete("s.id % 2 = 0").when_not_matched_insert_all().execute()


def replace(store: AuditedStore, place: str, random: Random) -> None:
    column = f"c{random.randrange(3)}"
    write_deltalake(
        place, rows(random, **{column: [1.5] * 3}), mode="overwrite", schema_mode="overwrite",
        storage_options=dict(store.options),
    )  # fmt: skip
    write_deltalake(
        place, rows(random), mode="overwrite", schema_mode="overwrite",
        storage_options=dict(store.options),
    )  # fmt: skip


def set_property(store: AuditedStore, place: str, random: Random) -> None:
    days = f"interval {random.randrange(1, 9)} days"
    opened(store, place).alter.set_table_properties({"delta.logRetentionDuration": days})


def compact(store: AuditedStore, place: str, random: Random) -> None:
    opened(store, place).optimize.compact()


def checkpoint(store: AuditedStore, place: str, random: Random) -> None:
    opened(store, place).create_checkpoint()


def forget(store: AuditedStore, place: str, random: Random) -> None:
    """A checkpoint, and all commits before it are deleted."""
    table = opened(store, place)
    table.create_checkpoint()
    for key in keys(store, place):
        name = key.rpartition("/")[2]
        if name.endswith(".json") and name[0] == "0" and int(name[:20]) < table.version():
            store.client.delete_object(Bucket=BUCKET, Key=key)


def remake(store: AuditedStore, place: str, random: Random) -> None:
    for key in keys(store, place):
        store.client.delete_object(Bucket=BUCKET, Key=key)
    for _ in range(random.randrange(1, 12)):
        append(store, place, random)


CHANGES: list[Change] = [
    append, append, append, refresh, refresh, delete, merge, replace, set_property, compact,
    checkpoint, forget, remake,
]  # fmt: skip


def keys(store: AuditedStore, place: str) -> list[str]:
    prefix = place.partition(f"//{BUCKET}/")[2] + "/"
    pages = store.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return [each["Key"] for page in pages for each in page.get("Contents", ())]


def facts(log: TableLog) -> dict[str, Any]:
    actions = log.adds.select(["path", "size_bytes", "num_records"]).to_pylist()
    return {
        "snapshot": log.snapshot,
        "files": sorted(actions, key=lambda each: each["path"]),
        "columns": log.columns,
        "settings": dict(log.settings),
        "transactions": [log.transaction(f"app {n}") for n in range(2)],
        "rows": sorted(map(str, pa.table(log.query("SELECT * FROM t")).to_pylist())),
    }


def assert_as_opened(store: AuditedStore, log: TableLog | None) -> TableLog:
    assert log is not None
    anew = Logs(store.options).at(log.location, log.version)
    assert anew is not None
    assert facts(log) == facts(anew)
    return log


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=pytest.mark.long if seed else pytest.mark.thorough)
     for seed in range(12)],
)  # fmt: skip
def test_random_histories(store: AuditedStore, seed: int) -> None:
    random, place = Random(seed), store.root(f"history {seed}")
    logs, held = Logs(store.options), list[TableLog]()
    append(store, place, random)
    for _ in range(12):
        before = assert_as_opened(store, logs.newest(place))
        change = None
        for _ in range(random.choice([0, 1, 1, 1, 2, 4])):
            change = random.choice(CHANGES)
            change(store, place, random)
        log = assert_as_opened(store, logs.newest(place))
        assert log.version == opened(store, place).version()
        if log.has(before.snapshot):
            assert_as_opened(store, log.at(before.version))
        if random.random() < 0.5:
            with log.writing() as table:
                write_deltalake(table, rows(random), mode="append")
            assert assert_as_opened(store, logs.newest(place)).version == log.version + 1
        if random.random() < 0.3:  # others hold it for longer
            held = [*held[-2:], log]
        gc.collect() if random.random() < 0.2 else None


def delete_commits(store: AuditedStore, place: str, *versions: int) -> None:
    for key in keys(store, place):
        if any(key.endswith(f"{each:020}.json") for each in versions):
            store.client.delete_object(Bucket=BUCKET, Key=key)


def followed(store: AuditedStore, logs: Logs, place: str, commits: int) -> TableLog:
    """The newest log of a table that was looked at after each of its commits."""
    for seed in range(commits):
        append(store, place, Random(seed))
        log = assert_as_opened(store, logs.newest(place))
    return log


def test_of_two_writers_after_one_version_the_second_fails(store: AuditedStore) -> None:
    place, random = store.root("two"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 4)
    once = CommitProperties(max_commit_retries=0)
    with log.writing() as first, log.writing() as second:
        assert first is not second
        write_deltalake(first, rows(random), mode="append", commit_properties=once)
        with pytest.raises(CommitFailedError):
            write_deltalake(second, rows(random), mode="append", commit_properties=once)
    assert assert_as_opened(store, logs.newest(place)).version == log.version + 1
    assert facts(log)["snapshot"].version == log.version


def test_a_lost_commit_of_a_writer_is_not_followed(store: AuditedStore) -> None:
    """It was committed, then the table was restored to the version before, and written again."""
    place, random = store.root("restored"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 3)
    with log.writing() as table:
        write_deltalake(table, rows(random), mode="append")
    delete_commits(store, place, log.version + 1)
    delete(store, place, random)
    append(store, place, random)
    for _ in range(3):
        assert_as_opened(store, logs.newest(place))
        append(store, place, random)


def test_a_store_that_is_silent_after_the_commit_does_not_fail_it(store: AuditedStore) -> None:
    place, logs = store.root("silent"), Logs(store.options)
    log = followed(store, logs, place, 4)
    silent = {**store.options, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    log.__dict__["_log"] = RemoteLog(place, {**silent, "max_retries": "0"})
    with log.writing() as table:
        write_deltalake(table, rows(Random(1)), mode="append")
    assert assert_as_opened(store, logs.newest(place)).version == log.version + 1


def test_nothing_is_left_of_logs_that_are_not_used(store: AuditedStore) -> None:
    place, logs = store.root("left"), Logs(store.options)
    append(store, place, Random(1))
    log = logs.newest(place)
    assert log is not None
    gone = weakref.ref(log)
    del log, logs
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("commits", [20, pytest.param(150, marks=pytest.mark.long)])
def test_what_follows_the_log_is_asked_for_alone(store: AuditedStore, commits: int) -> None:
    place, random = store.root(f"asked {commits}"), Random(1)
    logs = Logs(store.options)
    for _ in range(commits):
        append(store, place, random)
        logs.newest(place)
    append(store, place, random)
    before = store.counts(BUCKET)
    logs.newest(place)
    assert sum((store.counts(BUCKET) - before).values()) <= 12


def test_a_writer_leaves_the_log_of_its_commit(store: AuditedStore) -> None:
    place, random = store.root("committed"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 4)
    assert log.successor is None
    with log.writing() as table:
        write_deltalake(table, rows(random), mode="append")
    made = assert_as_opened(store, log.successor)
    assert made.version == log.version + 1
    assert logs.newest(place) is made
    append(store, place, random)
    assert assert_as_opened(store, logs.newest(place)).version == log.version + 2


def test_a_writer_that_was_overtaken_leaves_no_log(store: AuditedStore) -> None:
    """Its commit came after that of another writer, or never."""
    place, random = store.root("overtaken"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 4)
    with log.writing() as table:
        append(store, place, random)
        write_deltalake(table, rows(random), mode="append")
    assert log.successor is None
    log = assert_as_opened(store, logs.newest(place))
    assert log.version == 5
    with pytest.raises(ValueError, match="given up"), log.writing():
        raise ValueError("given up")
    assert log.successor is None
    assert logs.newest(place) is log


def test_a_commit_after_the_own_one_is_found(store: AuditedStore) -> None:
    """Made before anybody asked for the log of the own one."""
    place, random = store.root("after"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 4)
    with log.writing() as table:
        write_deltalake(table, rows(random), mode="append")
    merge(store, place, random)
    assert assert_as_opened(store, logs.newest(place)).version == log.version + 2


def test_a_table_that_was_restored_before_the_commit_is_opened_anew(store: AuditedStore) -> None:
    """To an earlier version, after which others committed up to the one that the writer had."""
    place, random = store.root("restored before"), Random(1)
    logs = Logs(store.options)
    log = followed(store, logs, place, 4)
    delete_commits(store, place, 2, 3)
    replace(store, place, random)
    with log.writing() as table:
        write_deltalake(table, rows(random), mode="append")
    assert log.successor is None
    assert assert_as_opened(store, logs.newest(place)).version == log.version + 1


def test_a_large_commit_that_was_lost_is_noticed(store: AuditedStore) -> None:
    """Its content is not kept."""
    place, logs = store.root("large"), Logs(store.options)
    names = [f"{'long' * 20} {number}" for number in range(600)]

    def put(table: DeltaTable | str, value: int) -> None:
        wide = pa.table({name: [value] for name in names})
        options = None if isinstance(table, DeltaTable) else dict(store.options)
        write_deltalake(table, wide, mode="append", storage_options=options)

    every = {"delta.dataSkippingNumIndexedCols": "-1"}
    empty = pa.schema([(name, pa.int64()) for name in names]).empty_table()
    write_deltalake(place, empty, configuration=every, storage_options=dict(store.options))
    log = logs.newest(place)
    assert log is not None
    with log.writing() as table:
        put(table, 1)
    delete_commits(store, place, 1)
    put(place, 2)
    newest = logs.newest(place)
    assert newest is not None
    assert set(pa.table(newest.query("SELECT * FROM t")).to_pylist()[0].values()) == {2}
