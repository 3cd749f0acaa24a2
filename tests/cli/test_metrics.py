"""What Prometheus reads, and whether the dashboard asks for what is there."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cli.conftest import Shop
from dagster_streamtables import Lake, load_tables
from dagster_streamtables.declarations import expected_tables
from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.metrics import DASHBOARD, StreamTablesCollector
from dagster_streamtables.metrics.collector import FAMILIES, PREFIX, exposition, serve
from dagster_streamtables.runtime.observe.table_status import TableDeclaration

Values = dict[tuple[str, ...], float]


def values(text: str, name: str) -> Values:
    """The samples of a metric, by the values of their labels in the order of the labels' names."""
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == PREFIX + name
    }


def by_table(**numbers: float) -> Values:
    return {(f"mart.{name}",): number for name, number in numbers.items()}


def test_metrics_are_what_status_and_history_say(shop: Shop) -> None:
    shop.said("suspend mart.busy")
    shop.sell(22, 23)
    found = shop.said("metrics")
    status = shop.by_table("status")
    revenue, table = status["mart.revenue"], ("mart.revenue",)
    assert values(found, "rows")[table] == 4
    assert values(found, "bytes")[table] == revenue["bytes"]
    assert values(found, "files")[table] == revenue["files"]
    stamp = datetime.fromisoformat(revenue["data_timestamp"]).timestamp()
    assert values(found, "data_timestamp_seconds")[table] == stamp
    assert 0 < values(found, "staleness_seconds")[table] <= revenue["staleness_seconds"]
    assert values(found, "stale")[table] == 0
    assert values(found, "suspended") == by_table(best=0, busy=1, revenue=0)
    assert values(found, "status")["SUSPENDED", "mart.busy"] == 1
    assert sum(values(found, "status").values()) == 3
    assert values(found, "source_versions_behind")["sales.orders", "mart.revenue"] == 1
    assert values(found, "source_bytes_behind")["sales.orders", "mart.revenue"] > 0
    assert values(found, "source_history_lost")["sales.orders", "mart.revenue"] == 0
    assert values(found, "source_history_seconds_left")["sales.orders", "mart.revenue"] > 86400
    assert values(found, "last_refresh_rows_in")[table] == 1
    assert values(found, "last_refresh_rows_inserted")[table] == 1
    assert values(found, "last_refresh_rows_deleted")[table] == 1
    newest = shop.json("history mart.revenue")["refreshes"][0]
    phases = {k[0]: v for k, v in values(found, "last_refresh_seconds").items() if k[1:] == table}
    assert phases == newest["phases"]
    assert values(found, "refreshes_total") == {
        (action, name): n
        for name, each in status.items()
        for action, n in each["refreshes"].items()
    }
    assert values(found, "intermediate_bytes")["mart.busy",] > 0


def test_a_table_that_cannot_be_read_hides_no_other(shop: Shop) -> None:
    newest = Path(shop.lake.location("mart.revenue"), "_delta_log", f"{1:020d}.json")
    newest.write_text("{")
    found = shop.said("metrics")
    assert values(found, "unreadable") == by_table(best=1, busy=0, revenue=1)
    assert values(found, "status")["ERROR", "mart.revenue"] == 1
    assert values(found, "rows") == by_table(busy=1)


def test_they_are_served_and_read_anew_at_each_scrape(shop: Shop) -> None:
    declared = list(expected_tables(load_tables(shop.tables)))

    def ask() -> Iterable[TableDeclaration]:
        if not shop.tables.exists():
            raise InvalidDefinition("there is no folder")
        return declared

    server, thread = serve(StreamTablesCollector(shop.lake.monitor, ask), port=0)
    try:
        address = f"http://127.0.0.1:{server.server_port}/metrics"

        def scrape() -> str:
            with urllib.request.urlopen(address) as response:
                return response.read().decode()

        assert values(scrape(), "source_versions_behind")["sales.orders", "mart.busy"] == 0
        shop.sell(30)
        shutil.rmtree(shop.tables)
        again = scrape()
        assert values(again, "source_versions_behind")["sales.orders", "mart.busy"] == 1
        assert values(again, "declarations_unreadable") == {(): 1}
        assert ("mart.best",) in values(again, "stale"), "what was declared before holds"
        with pytest.raises(EnvironmentProblem):
            serve(StreamTablesCollector(shop.lake.monitor), port=server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_new_table_has_a_status_and_no_values_that_nobody_knows(bare: Shop) -> None:
    found = bare.said("metrics")
    assert values(found, "status")["NEW", "mart.best"] == 1
    for name in ("rows", "staleness_seconds", "stale", "last_refresh_seconds", "refreshes_total"):
        assert values(found, name) == {}, name


def test_an_empty_lake_is_no_error(tmp_path: Path) -> None:
    text = exposition(StreamTablesCollector(Lake(tmp_path).monitor))
    assert values(text, "status") == {}
    assert values(text, "collect_seconds")


def test_the_dashboard_asks_for_what_is_exported() -> None:
    board = json.loads(DASHBOARD.read_text())
    labels = {
        PREFIX + name + "_total" * about.counter: set(about.labels)
        for name, about in FAMILIES.items()
    }
    asked = [target for panel in board["panels"] for target in panel["targets"]]
    queries = [each["expr"] for each in (*asked, *board["annotations"]["list"])]
    queries += [each["query"]["query"] for each in board["templating"]["list"][1:]]
    used: set[str] = set()
    for query in queries:
        names = re.findall(rf"\b{PREFIX}\w+", query)
        assert names, query
        used |= set(names)
        assert set(names) <= set(labels), query
        for name, matchers in re.findall(rf"\b({PREFIX}\w+){{(.*?)}}", query):
            assert set(re.findall(r"(\w+)\s*=", matchers)) <= labels[name], query
        for by in re.findall(r"by \((.*?)\)", query):
            assert set(by.split(", ")) <= set().union(*(labels[name] for name in names)), query
    for target in asked:
        known = set().union(*(labels[n] for n in labels if n in target["expr"]))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known, target
    assert set(labels) - used == {PREFIX + "last_commit_timestamp_seconds"}
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
