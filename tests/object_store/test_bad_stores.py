"""Stores that cannot be trusted, or fail in the middle: told at once, nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from dagster_streamtables import Lake, PublicationEntry, StreamTable
from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.replication.lake import lake_publisher
from dagster_streamtables.replication.lifecycle import replication_state
from dagster_streamtables.runtime.storage import conditional_puts
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts
from object_store.replicating import append, held, publish, replicating
from qa.object_store.faults import Faults
from qa.object_store.store import AuditedStore, audited_store

pytestmark = pytest.mark.process

TOTALS = StreamTable(
    "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
)
ORDERS = PublicationEntry("orders", key=("id",))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedStore]:
    with audited_store(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture
def store(audited: AuditedStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedStore]:
    """An empty bucket, ``lake``, of a store that this process has never met."""
    # A refresh that cannot reach the store does not give its turn back.
    for holder in (lake_publisher, "LENGTH"), (replication_state, "LENGTH"):
        monkeypatch.setattr(*holder, timedelta(seconds=2))
    audited.make("lake")
    conditional_puts._known.clear()
    yield audited
    audited.set(Faults())
    audited.drop("lake")


def lake_in(store: AuditedStore, name: str = "tables") -> Lake:
    return Lake(store.place("lake", name), storage_options=store.options)


def keys(store: AuditedStore) -> list[str]:
    listed = store.client.list_objects_v2(Bucket="lake")
    return [each["Key"] for each in listed.get("Contents", ())]


def replicated(store: AuditedStore) -> Callable[[], str]:
    """Copied to another lake of the store, by delta-rs; refreshes the copy."""
    shop = lake_in(store, "shop")
    append(store, shop.location("orders"), (1, 10), (2, 20), feed=False)
    replications = replicating(shop, lake_in(store), ORDERS)

    def refresh() -> str:
        return str(replications.refresh("eu", wait=10)).split(";")[0]

    assert refresh() == "eu: COPY"
    return refresh


def sell(store: AuditedStore, id: int) -> None:
    append(store, lake_in(store, "shop").location("orders"), (id, 10 * id), feed=False)


def copied(store: AuditedStore) -> list[tuple[int, int]]:
    return held(store, lake_in(store).location("eu.orders"))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(lambda lake: lake.refresh(TOTALS), id="refresh"),
        pytest.param(lambda lake: lake.controls.suspend("totals", "it is wrong"), id="control"),
        pytest.param(lambda lake: publish(lake, ORDERS), id="publication"),
    ],
)
def test_a_store_that_ignores_the_condition_is_refused(
    store: AuditedStore, first: Callable[[Lake], object]
) -> None:
    lake = lake_in(store)
    append(store, lake.location("orders"), (1, 10), feed=False)
    before = keys(store)
    store.set(Faults(unconditional=True))
    for _ in range(2):
        with pytest.raises(EnvironmentProblem, match="lets a commit overwrite another") as raised:
            first(lake)
        assert "If-None-Match" in raised.value.fix
    assert keys(store) == before


def test_a_store_is_asked_once(store: AuditedStore) -> None:
    lake = lake_in(store)
    root = str(lake.root)
    require_conditional_puts(root, lake.storage_options)
    made, asked = keys(store), store.counts("lake").total()
    assert len(made) == 1 and made[0].startswith("tables/_streamtables/conditional_puts/")
    require_conditional_puts(root, lake.storage_options)
    assert store.counts("lake").total() == asked
    conditional_puts._known.clear()  # as in another process
    require_conditional_puts(root, lake.storage_options)
    assert store.counts("lake").total() <= asked + 2
    assert keys(store) == made


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose processors")
def test_a_store_is_asked_on_one_processor_by_several_threads(store: AuditedStore) -> None:
    """delta-rs has a thread for each processor, and the question keeps one waiting."""
    program = """
import json, os, sys
from concurrent.futures import ThreadPoolExecutor
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts
options = json.load(sys.stdin)
roots = [f"s3a://lake/{n}" for n in range(3)]
with ThreadPoolExecutor() as pool:
    list(pool.map(lambda root: require_conditional_puts(root, options), roots))
"""
    subprocess.run([sys.executable, "-c", program], input=json.dumps(dict(store.options)),
                   text=True, check=True, timeout=150)  # fmt: skip
    assert len(keys(store)) == 3


def test_answers_that_are_lost_do_not_hide_a_condition(store: AuditedStore) -> None:
    store.set(Faults(lost=1))
    require_conditional_puts(str(lake_in(store).root), store.options)
    assert store.met()["lost"]


@pytest.mark.parametrize(
    "code", ["AccessDenied", "ExpiredToken", "NoSuchBucket", "RequestTimeTooSkewed"]
)
def test_a_store_that_refuses_says_why_and_has_nothing_half_written(
    store: AuditedStore, code: str
) -> None:
    refresh = replicated(store)
    sell(store, 3)
    log = store.audited("lake")
    store.set(Faults(refuse=code))
    with pytest.raises(EnvironmentProblem, match=code):
        refresh()
    assert store.audited("lake") == log
    store.set(Faults())
    assert refresh() == "eu: CHANGES"
    assert copied(store) == [(1, 10), (2, 20), (3, 30)]


def test_a_token_that_expires_between_data_and_commit(store: AuditedStore) -> None:
    refresh = replicated(store)
    sell(store, 3)
    store.set(Faults(refuse="ExpiredToken", after_data=True))
    with pytest.raises(EnvironmentProblem, match="ExpiredToken"):
        refresh()
    assert copied(store) == [(1, 10), (2, 20)]
    store.set(Faults())
    assert refresh() == "eu: CHANGES"
    assert copied(store) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(lost=1), id="answers are lost"),
        pytest.param(Faults(conflict=0.5), id="others ask for the same key"),
        pytest.param(Faults(failed=1), id="stored, and answered with 500"),
        pytest.param(Faults(clock=3600), id="the clock is off"),
    ],
)
def test_each_change_is_made_once(store: AuditedStore, faults: Faults) -> None:
    refresh = replicated(store)
    expected = [(1, 10), (2, 20)]
    for id in (3, 4):
        sell(store, id)
        expected.append((id, 10 * id))
        store.set(faults)
        with suppress(EnvironmentProblem):  # that the store does not answer
            refresh()
        store.set(Faults())
        refresh()
        assert copied(store) == expected


def test_the_audit_sees_each_commit(store: AuditedStore, tmp_path: Path) -> None:
    append(store, store.place("lake"), (1, 10), feed=False)
    append(store, store.place("lake"), (2, 20), feed=False)
    lines = store.audited("lake")[-2:]
    seen = [(line["status"], line["existed"], line["conditional"]) for line in lines]
    assert seen == [(200, False, True)] * 2
