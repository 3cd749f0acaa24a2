"""What a tick of the refresh sensor costs over many stream tables.

    python -m benchmarks.tick [--tables 500]

A real instance on SQLite, in a temporary folder, remembers some refreshes of every table; the
tables are Delta tables that hold what a refresh would have left. No Spark takes part.

    none due     the usual tick
    all due      nothing moved, and every table is to be marked fresh
    all moved    every source has a new version, and every table is to be refreshed
    failing      as `all moved`, after many runs that failed

The first tick of a process opens every log, and is shown by itself. Of the others, the median.
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import typer
from dagster import DagsterRunStatus
from dagster._core.test_utils import create_run_for_test
from deltalake import CommitProperties, Transaction, write_deltalake
from rich.table import Table

from benchmarks.results import CONSOLE, Figure, Results
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.tick import SensorSettings, TickMemory, evaluate
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog, build_catalog
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.catalog.provenance import CODE_VERSION, DATA_VERSION
from dagster_streamtables.orchestration.instance.dagster_runs import DEFINITIONS_TAG, SENSOR_TAG
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_state import (
    RefreshRecord,
    SourceState,
    StreamTableState,
    application,
)
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions

_TABLES_OF_A_SOURCE = 10
_REFRESHES = 3
"""Materializations of each table that the instance remembers."""
_FAILED_RUNS = 200


def main(tables: int = 500, ticks: int = 5, profile: bool = False) -> None:
    """Measure, and print the table.

    Args:
        tables: How many stream tables.
        ticks: How many of each kind.
        profile: Print where the time of the last kind went.
    """
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        root = Path(folder) / "lake"
        declared = list(_declared(tables))
        _write_lake(root, declared)
        resource = StreamTablesResource(root=str(root))
        catalog = build_catalog(declared, lake=resource.logs())
        results = Results("tick", tables, ticks)
        (Path(folder) / "home").mkdir()
        with dg.DagsterInstance.local_temp(str(Path(folder) / "home")) as instance:
            _remember(instance, catalog, Lake(root))
            grid = Table("tick", "seconds", "runs", "marked fresh", title=f"{tables} stream tables")
            for kind, found, seconds in _kinds(root, catalog, instance, resource, ticks, profile):
                results.figures.append(Figure(kind, "tick", 0, False, [seconds], {}, ""))
                marked = sum(isinstance(e, dg.AssetMaterialization) for e in found.asset_events)
                grid.add_row(
                    kind, f"{seconds:.3f}", str(len(found.run_requests or [])), str(marked)
                )
    results.store()
    CONSOLE.print(grid)


def _kinds(
    root: Path,
    catalog: Catalog,
    instance: dg.DagsterInstance,
    resource: StreamTablesResource,
    ticks: int,
    profile: bool,
) -> Iterator[tuple[str, dg.SensorResult, float]]:
    memory, later = TickMemory(resource.logs()), datetime.now(UTC) + timedelta(hours=2)

    def tick(now: datetime) -> dg.SensorResult:
        return evaluate(
            NodeAssets(catalog), instance, resource.logs(), now=now, cursor=cursor, memory=memory
        )

    cursor: str | None = None
    first, seconds = _timed(lambda: tick(later), 1)
    cursor = first.cursor
    yield "first of a process, all due", first, seconds
    yield "none due", *_timed(lambda: tick(datetime.now(UTC)), ticks)
    later += timedelta(hours=2)  # what the first tick looked at is due once more
    yield "all due", *_timed(lambda: tick(later), ticks)
    for source in sorted(catalog.observed):
        _append(root, source)
    yield "all moved", *_timed(lambda: tick(later), ticks)
    for entry in catalog.entries[:_FAILED_RUNS]:
        tags = {
            SENSOR_TAG: SensorSettings().name,
            DEFINITIONS_TAG: NodeAssets(catalog).nodes.fingerprint,
        }
        selection = frozenset({entry.key})
        create_run_for_test(
            instance, status=DagsterRunStatus.FAILURE, tags=tags, asset_selection=selection
        )
    with _profiled(profile):
        yield "failing", *_timed(lambda: tick(later), ticks)


def _timed(work: Callable[[], dg.SensorResult], times: int) -> tuple[dg.SensorResult, float]:
    seconds: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - began)
    return found, statistics.median(seconds)


@contextmanager
def _profiled(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    yield
    profiler.disable()
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


def _declared(tables: int) -> Iterator[StreamTable]:
    """Trees of ten tables over a source: two levels, durations, a cron, and CALCULATED ones."""
    for number in range(tables):
        tree, place = divmod(number, _TABLES_OF_A_SOURCE)
        above = f"src.s{tree}" if place < 4 else f"mart.t{tree}_{place % 4}"
        query = f"SELECT id, amount + {place} AS amount FROM {above} WHERE amount > {place}"
        schedule = (None, None, "0 * * * *", "30m")[place] if place < 4 else "5m"
        yield StreamTable(f"mart.t{tree}_{place}", query, schedule=schedule)


_ROWS = pa.table({"id": [1, 2, 3], "amount": [10, 20, 30]})


def _append(root: Path, name: str) -> None:
    write_deltalake(Lake(root).location(name), _ROWS, mode="append")


def _write_lake(root: Path, tables: list[StreamTable]) -> None:
    """Every table as a refresh leaves it: rows, frontier and transaction in one commit."""
    lake = Lake(root)
    ours = {table.name for table in tables}
    for name in dict.fromkeys(s for table in tables for s in table.sources if s not in ours):
        _append(root, name)
    for table in tables:
        logs = {name: lake._catalog.newest(name) for name in table.sources}
        sources = {
            n: SourceState(log.id, log.version, log.columns, log.commit)
            for n, log in logs.items()
            if log
        }
        refresh = uuid.uuid4().hex
        query = f"{table.meaning}.bag"
        account = RefreshRecord("DIFFERENTIAL", "as a refresh leaves it", "DIFFERENTIAL", 0.0, 0.0)
        state = StreamTableState(
            table.name, 1, query, sources, refresh, time.time(), refresh, account, compared=True
        )  # fmt: skip
        properties = CommitProperties(
            custom_metadata={"userMetadata": state.to_json()},
            app_transactions=[Transaction(application(table.name), 1)],
        )
        write_deltalake(lake.location(table.name), _ROWS, commit_properties=properties)


def _remember(instance: dg.DagsterInstance, catalog: Catalog, lake: Lake) -> None:
    heads = LatestVersions(lake.location)
    for _ in range(_REFRESHES):
        for entry in catalog.sound:
            state = heads.state(entry.name)
            assert state is not None
            instance.report_runless_asset_event(
                dg.AssetMaterialization(
                    entry.key,
                    tags={
                        DATA_VERSION: state.data_version,
                        CODE_VERSION: entry.spec.code_version or "",
                    },
                    metadata={
                        keys.ACTION: "DIFFERENTIAL",
                        keys.VERSION: 0,
                        keys.ROW_COUNT: 3,
                        keys.FRONTIER: dg.MetadataValue.json(state.frontier),
                        **{k: v for k, v in entry.spec.metadata.items() if k.startswith("dagster")},
                    },
                )
            )


if __name__ == "__main__":
    typer.run(main)
