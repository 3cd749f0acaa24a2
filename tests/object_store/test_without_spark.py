"""What needs no Spark, on a store that speaks S3's protocol instead of in a folder."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.fs as fs
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, PublicationEntry, StreamTable, subscribe
from dagster_streamtables.errors import (
    ConflictingCommit,
    EnvironmentProblem,
    LostStore,
    SourceProblem,
)
from dagster_streamtables.runtime.catalogs.unity_catalog import UnityCatalog
from dagster_streamtables.runtime.delta.log_folder import log_at_place
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_locations import commit_file, files_below
from dagster_streamtables.runtime.errors.environment_errors import store_problem
from dagster_streamtables.runtime.errors.error_translation import is_lasting, may_pass
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.runtime.storage.documents import Ledger, OvertakenAppend
from object_store.replicating import append, held, replicating
from qa.object_store.faults import Faults
from qa.object_store.store import BUCKET, AuditedStore, audited_store
from runtime.catalog_server import TOKEN, catalog_server

pytestmark = pytest.mark.process

APPENDS = 6
NOBODY = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "1"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedStore]:
    with audited_store(tmp_path_factory.mktemp("store")) as found:
        found.make(BUCKET)
        yield found


def change(store: AuditedStore, place: str) -> None:
    """Row 1 goes, row 2 changes, row 3 comes."""
    table = DeltaTable(place, storage_options=dict(store.options))
    table.delete("id = 1")
    table.update(predicate="id = 2", updates={"amount": "21"})
    append(store, place, (3, 30))


def test_a_version_begins_with_a_commit_or_a_checkpoint(store: AuditedStore) -> None:
    place = store.root("cleaned")
    for number in range(3):
        append(store, place, (number, 10))
    log = log_at_place(place, store.options)
    assert log.begins_before(1)
    DeltaTable(place, storage_options=dict(store.options)).create_checkpoint()
    files_below(place, dict(store.options)).delete_file(commit_file(0))
    assert [log.begins_before(version) for version in (1, 2)] == [False, True]
    logs = Logs(store.options)
    assert logs.at(place, 1) is None
    found = logs.at(place, 2)
    assert found is not None and found.adds.num_rows == 3


def requests(store: AuditedStore) -> int:
    return sum(store.counts(BUCKET).values())


def test_a_log_without_changes_costs_few_requests(store: AuditedStore) -> None:
    """As many as docs/object_stores.md says."""
    places = {name: store.root(f"quiet/{name}") for name in ("a", "b")}
    for place in places.values():
        append(store, place, (1, 10))
    logs, latest = Logs(store.options), LatestVersions(places.__getitem__, store.options)
    opened = logs.newest(places["a"])
    logs.newest(places["a"])
    latest.heads(places)
    before = requests(store)
    assert logs.newest(places["a"]) is opened
    assert requests(store) == before + 3
    latest.heads(places)  # within a minute, only the next commits are asked for
    latest.heads(places)
    assert requests(store) <= before + 3 + 2 * 3 + 2 * 1
    before = requests(store)
    assert all(latest.heads(places).values())
    assert requests(store) == before + 2


def test_another_table_in_the_place_of_one_is_noticed(store: AuditedStore) -> None:
    """Though its first commit has the same size, and may be of the same second."""
    place = store.root("replaced/orders")
    append(store, place, (1, 10))
    logs, latest = Logs(store.options), LatestVersions(lambda _: place, store.options)
    first, head = logs.newest(place), latest.head("orders")
    assert first is not None
    first_id = first.id
    files = files_below(place, store.options)
    for info in files.get_file_info(fs.FileSelector("_delta_log")):
        files.delete_file(info.path)
    append(store, place, (2, 20))
    second = logs.newest(place)
    assert second is not None and second.version == 0
    assert second.id != first_id
    latest._sure_until.clear()  # a minute later
    assert latest.head("orders") != head


def test_of_two_writers_of_a_version_one_succeeds(store: AuditedStore) -> None:
    def append_all(name: str) -> list[Any]:
        ledger, done = Ledger(store.root("ledger"), store.options), []
        while len(done) < APPENDS:
            newest = ledger.read()
            try:
                version = ledger.append([name, len(done)], newest and newest.version)
                done.append((version, [name, len(done)]))
            except OvertakenAppend:
                pass
        return done

    with ThreadPoolExecutor() as pool:
        done = [each for part in pool.map(append_all, "ab") for each in part]
    assert sorted(version for version, _ in done) == list(range(2 * APPENDS))
    ledger = Ledger(store.root("ledger"), store.options)
    for version, value in done:
        entry = ledger.at(version)
        assert entry is None or entry.value == value


def test_a_table_is_suspended_for_every_process(store: AuditedStore) -> None:
    root = store.root("controls")
    Controls(root, store.options).suspend("mart.totals", "the source is wrong")
    assert Controls(root, store.options).read("mart.totals").suspension == "the source is wrong"
    assert Controls(root, store.options).resume("mart.totals")
    assert not Controls(root, store.options).read("mart.totals").suspension


@pytest.mark.parametrize(
    ("root", "options", "kind", "said"),
    [
        ("s3a://nowhere/lake", {}, EnvironmentProblem, "NoSuchBucket, The specified bucket does"),
        ("s3a://lake/lake", NOBODY, LostStore, "Connection refused"),
    ],
    ids=["no bucket", "no answer"],
)
def test_a_store_that_fails_says_nothing_about_the_table(
    store: AuditedStore, root: str, options: dict[str, str], kind: type[Exception], said: str
) -> None:
    """A damaged log would be deleted by its owner, and the error would suspend the table."""
    lake = Lake(root, storage_options={**store.options, **options})
    table = StreamTable("mart.totals", "SELECT id, SUM(amount) AS total FROM orders GROUP BY id")
    for read in (lambda: lake.columns("orders"), lambda: lake.refresh(table)):
        with pytest.raises(kind, match=said) as caught:
            read()
        assert not isinstance(caught.value, SourceProblem)
        assert not is_lasting(caught.value)
        assert may_pass(caught.value) is (kind is LostStore)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Generic S3 error: Server returned 503 Service Unavailable: SlowDown", LostStore),
        ("Generic MicrosoftAzure error: 403 Forbidden: AuthenticationFailed", EnvironmentProblem),
        ("Generic GCS error: operation timed out", LostStore),
        ("x\nsoftware.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP "
         "request: Connection refused", LostStore),
        ("Generic LocalFileSystem error: Connection refused", type(None)),
        ("[TASK_WRITE_FAILED] Task failed\nCaused by: java.nio.file.AccessDeniedException: t/p: "
         "Writing Object on t/p: software.amazon.awssdk.services.s3.model.S3Exception: Access "
         "Denied (Service: S3, Status Code: 403, Request ID: null)", EnvironmentProblem),
        ("org.apache.hadoop.fs.s3a.AWSBadRequestException: Writing Object on t: "
         "software.amazon.awssdk.services.s3.model.S3Exception: The provided token has expired. "
         "(Service: S3, Status Code: 400, Request ID: null):ExpiredToken", EnvironmentProblem),
        ("org.apache.hadoop.fs.s3a.UnknownStoreException: `t': on t", EnvironmentProblem),
        ("org.apache.hadoop.fs.s3a.AWSBadRequestException: Writing Object on t: S3Exception: "
         "ConditionalRequestConflict (Service: S3, Status Code: 409, Request ID: null)", LostStore),
        ("java.io.IOException: streamtables.S3LogStore: s3a://l lets a commit overwrite another: "
         "it ignores If-None-Match", EnvironmentProblem),
        ("java.lang.ClassNotFoundException: streamtables.S3LogStore", EnvironmentProblem),
    ],
)  # fmt: skip
def test_the_words_of_a_store(words: str, kind: type[Any]) -> None:
    assert type(store_problem(OSError(words))) is kind


@pytest.mark.spark
def test_a_spark_without_a_connector_is_told_so(store: AuditedStore, spark: SparkSession) -> None:
    lake = Lake(store.root("unread"), storage_options=store.options, spark=spark)
    append(store, lake.location("orders"), (1, 10))
    with pytest.raises(EnvironmentProblem, match="Spark has no connector for the object store"):
        lake.refresh(StreamTable("large", "SELECT id FROM orders WHERE amount > 5"))


def test_changes_are_followed_with_a_slot(store: AuditedStore) -> None:
    lake = Lake(store.root("followed"), storage_options=store.options)
    place = lake.location("orders")
    append(store, place, (1, 10), (2, 20))
    with subscribe(lake, "orders", slot="index") as orders:
        assert orders.fetch(None, timeout=0).num_rows == 2
        orders.ack()
    change(store, place)
    with subscribe(lake, "orders", slot="index") as orders:
        rows = orders.fetch(None, timeout=0).to_pylist()
    net: Counter[tuple[int, int]] = Counter()
    for row in rows:
        net[row["id"], row["amount"]] += row["_diff"]
    changed = {(1, 10): -1, (2, 20): -1, (2, 21): 1, (3, 30): 1}
    assert {key: n for key, n in net.items() if n} == changed


@pytest.mark.long
def test_a_lake_in_the_store_replicates_another(store: AuditedStore) -> None:
    shop = Lake(store.root("shop"), storage_options=store.options)
    place = shop.location("sales.orders")
    append(store, place, (1, 10), (2, 20))
    lake = Lake(store.root("copies"), storage_options=store.options)
    replications = replicating(shop, lake, PublicationEntry("sales.orders", key=("id",)))
    said = [str(replications.refresh("eu"))]
    change(store, place)
    said += [str(replications.refresh("eu")) for _ in range(2)]
    assert [each.split(";")[0] for each in said] == ["eu: COPY", "eu: CHANGES", "eu: NO_DATA"]
    assert held(store, lake.location("eu.orders")) == held(store, place) == [(2, 21), (3, 30)]
    replications.drop("eu")


@pytest.mark.long
def test_commits_whose_answer_is_lost_are_made_once(store: AuditedStore) -> None:
    """delta-rs sends a commit again, meets its own, and would make it again as a new version."""
    shop = Lake(store.root("whole"), storage_options=store.options)
    place = shop.location("sales.orders")
    append(store, place, (1, 10), (1, 10))
    store.set(Faults(lost=1, within="lost"))
    with pytest.raises(CommitFailedError):  # of a commit that was made
        append(store, store.root("lost/own"), (1, 10))
    assert held(store, store.root("lost/own")) == [(1, 10)]
    lake = Lake(store.root("lost/lake"), storage_options=store.options)
    replications = replicating(shop, lake, PublicationEntry("sales.orders"))
    for _ in range(2):
        append(store, place, (1, 10), (2, 20))
        for _ in range(4):  # until what came is there
            with suppress(ConflictingCommit):
                if str(replications.refresh("eu")).endswith("NO_DATA"):
                    break
        assert held(store, lake.location("eu.orders")) == held(store, place)
    controls = Controls(lake.root, store.options)
    controls.suspend("mart.totals", "the source is wrong")
    assert controls.resume("mart.totals")
    assert store.met()["lost"] > 5
    store.set(Faults())
    assert len(held(store, place)) == 6


def test_a_catalog_vends_the_credentials(
    store: AuditedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lake itself has none for the bucket; new ones are used once the old ones end."""
    place = store.root("vended")
    append(store, place, (1, 10))
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    without = {name: value for name, value in store.options.items() if name not in keys}
    without |= {"AWS_EC2_METADATA_DISABLED": "true", "max_retries": "1"}
    with catalog_server() as unity:
        unity.add("main.shop.orders", place)

        def vend(token: str, seconds: float) -> None:
            names = {"access_key_id": store.options[keys[0]], "session_token": token}
            secret = {"secret_access_key": store.options[keys[1]]}
            ends = int((time.time() + seconds) * 1000)
            unity.credentials = {"aws_temp_credentials": names | secret, "expiration_time": ends}

        vend("first", 60)
        lake = Lake(
            tmp_path,
            storage_options=without,
            catalogs={"main": unity.address},
            catalog_token=TOKEN,
        )
        with pytest.raises(EnvironmentProblem):
            lake.version(f"delta.`{place}`")
        log = lake.access.catalog.existing("main.shop.orders")
        assert (log.storage_options or {})["AWS_SESSION_TOKEN"] == "first"
        assert log.adds.num_rows == 1
        latest = lake.latest_versions()
        assert latest.heads(["main.shop.orders"])["main.shop.orders"] == log.head
        append(store, place, (2, 20))
        vend("second", 3600)
        monkeypatch.setattr(UnityCatalog, "lifetime", -1.0)
        log = lake.access.catalog.existing("main.shop.orders")
        assert (log.storage_options or {})["AWS_SESSION_TOKEN"] == "second"
        assert log.version == 1
        assert latest.heads(["main.shop.orders"])["main.shop.orders"] == log.head
        asked = len(unity.asked)
        lake.version("main.shop.orders")  # the second ones are still valid
        assert {each.rpartition("/")[2] for each in unity.asked[asked:]} == {"main.shop.orders"}
