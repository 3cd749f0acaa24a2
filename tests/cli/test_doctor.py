"""`streamtables doctor`: what it shows, and how it exits."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from cli.conftest import Shop

KEYS = {
    "table", "location", "oldest", "newest", "findings", "recent", "aborted", "unjudged", "verdict",
}  # fmt: skip


@pytest.fixture
def shop(bare: Shop) -> Shop:
    for id_ in (21, 22, 23):
        bare.sell(id_)
    return bare


def orders(shop: Shop) -> Path:
    return Path(shop.root, "sales", "orders")


def commit(shop: Shop, version: int) -> Path:
    return orders(shop) / "_delta_log" / f"{version:020d}.json"


def erase(shop: Shop, version: int) -> None:
    """A commit of Spark that changes nothing takes the place of one, two hours ago."""
    info = {"timestamp": int(time.time() * 1000), "engineInfo": "Apache-Spark/4.2.0"}
    commit(shop, version).write_text(json.dumps({"commitInfo": info}))
    ages = {path: path.stat().st_mtime_ns for path in orders(shop).rglob("*") if path.is_file()}
    for path, age in ages.items():
        os.utime(path, ns=(age, age - 7200 * 10**9))
    for path in orders(shop).glob("_delta_log/*.json"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for each in lines:
            if "commitInfo" in each:
                each["commitInfo"]["timestamp"] -= 7200 * 1000
        times = path.stat()
        path.write_text("\n".join(map(json.dumps, lines)))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_lake_without_traces(shop: Shop) -> None:
    [found] = shop.json("doctor")
    assert set(found) == KEYS
    assert (found["table"], found["verdict"], found["findings"]) == ("sales.orders", "no trace", [])
    assert (found["oldest"], found["newest"]) == (0, 3)
    assert "in doubt" not in shop.said("doctor")


def test_a_possible_trace_names_versions_and_what_to_do(shop: Shop) -> None:
    erase(shop, 2)
    [found] = shop.json("doctor sales.orders")
    [finding] = found["findings"]
    assert (found["verdict"], finding["trace"], finding["sure"]) == ("possible", "data file", False)
    assert (finding["first"], finding["last"], finding["count"]) == (2, 2, 1)
    said = shop.said("doctor")
    assert finding["examples"][0] in said
    assert "docs/object_stores.md#commits-on-s3" in said


def test_a_sure_trace_is_no(shop: Shop) -> None:
    DeltaTable(orders(shop)).optimize.compact()
    erase(shop, 2)
    assert "sure" in shop.said("doctor", code=3)
    [found] = shop.json("doctor", code=3)
    assert found["verdict"] == "sure"


def test_a_table_that_cannot_be_read_does_not_hide_the_others(shop: Shop) -> None:
    broken = Path(shop.root, "sales", "broken")
    write_deltalake(broken, DeltaTable(orders(shop)).to_pyarrow_table())
    (broken / "_delta_log" / f"{0:020d}.json").write_text("{")
    done = shop.run("doctor")
    assert done.exit_code == 1
    assert "sales.orders" in done.stdout
    assert "the log of a table cannot be read" in done.stderr
    missing = shop.run("doctor sales.none")
    assert (missing.exit_code, "there is no table" in missing.stderr) == (1, True)
