"""How fresh Dagster keeps the demo by itself: lateness, latency, runs for nothing, errors.

    python -m benchmarks.dev [--minutes 30] [--no-kill] [--default-instance]

The demo is started anew and left alone; after a third of the time its daemon is killed, after two
thirds its code server. `dagster dev` that ended by it is started again, as a service manager would.
A table is late by the time from one materialization to the next beyond its schedule. The latency
of a table is the time from a commit of a source that it reads to its own commit that reflects it.
The first minutes, in which all tables are made, do not count.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import dagster as dg
import psutil
import typer
from deltalake import DeltaTable
from rich.table import Table

from benchmarks.results import CONSOLE
from dagster_streamtables import load_tables
from dagster_streamtables.catalog import Catalog, build_catalog
from dagster_streamtables.declare.schedule import Duration
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.table_state import StreamTableState
from example_defs.demo import PROJECT

FOLDER = PROJECT / ".demo"
WARM = 180.0
"""Seconds from the start after which figures count."""
_ERRORS = re.compile(r" - ERROR - |Traceback")


def main(
    minutes: float = 30, pace: float = 30, kill: bool = True, default_instance: bool = False
) -> None:
    """Run the demo, and print the tables.

    Args:
        minutes: For which it is left alone.
        pace: Seconds between two commits of each source.
        kill: A daemon and a code server in between.
        default_instance: Dagster as it is without a `dagster.yaml`; else the demo's.
    """
    begin = time.time()
    killed = _left_alone(minutes * 60, pace, kill=kill, default_instance=default_instance)
    lake = Lake(FOLDER / "lake")
    catalog = build_catalog(load_tables(PROJECT / "example_defs/tables"), min_schedule_seconds=1)
    os.environ["DAGSTER_HOME"] = str(FOLDER / "dagster")
    with dg.DagsterInstance.get() as instance:
        seen = {e.name: _materializations(instance, e.key) for e in catalog.sound}
        runs = _runs(instance)
    since = begin + WARM
    _print_tables(catalog, lake, seen, since)
    _print_runs(runs, since)
    _print_errors(killed)


def _left_alone(
    seconds: float, pace: float, *, kill: bool, default_instance: bool
) -> dict[str, float]:
    """Run the demo for so long; which processes were killed, and when."""
    killed: dict[str, float] = {}
    plan = [("dagster._daemon", 1 / 3), ("dagster api grpc", 2 / 3)] if kill else []
    begin = time.time()
    demo = _demo(pace, "--fresh", default_instance=default_instance)
    try:
        while time.time() < begin + seconds:
            time.sleep(1)
            if demo.poll() is not None:
                demo = _demo(pace, default_instance=default_instance)
            if plan and time.time() > begin + seconds * plan[0][1]:
                name, _ = plan.pop(0)
                killed |= dict.fromkeys(_kill(demo.pid, name), time.time())
    finally:
        demo.terminate()
        demo.wait(120)
    return killed


def _demo(pace: float, *more: str, default_instance: bool) -> subprocess.Popen[bytes]:
    instance = ["--default-instance"] if default_instance else []
    command = [
        sys.executable,
        "-m",
        "example_defs.demo",
        "--no-worker",
        "--pace",
        str(pace),
        *instance,
        *more,
    ]
    return subprocess.Popen(command, cwd=PROJECT)


def _kill(parent: int, name: str) -> Iterator[str]:
    """The commands of the killed processes below the demo whose command holds the name."""
    for process in psutil.Process(parent).children(recursive=True):
        command = " ".join(process.cmdline())
        if name in command:
            process.kill()
            yield f"{name} (process {process.pid})"
            return


@dataclass(frozen=True)
class Seen:
    """One materialization."""

    at: float
    action: str
    run: str


def _materializations(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[Seen]:
    found = instance.fetch_materializations(key, limit=10_000, ascending=True).records
    return [
        Seen(
            each.timestamp,
            str(each.asset_materialization.metadata[metadata.ACTION].value),
            each.run_id,
        )
        for each in found
        if each.asset_materialization is not None
    ]


def _print_tables(catalog: Catalog, lake: Lake, seen: dict[str, list[Seen]], since: float) -> None:
    columns = ("stream table", "schedule, s", "refreshes", "late: p50", "p95", "worst")
    grid = Table(*columns, "latency: p50", "p95", "worst", title="Seconds")
    for entry in catalog.sound:
        schedule = entry.examined.schedule
        if not isinstance(schedule, Duration):
            continue
        times = [each.at for each in seen[entry.name] if each.at > since]
        late = [max(0.0, b - a - schedule.seconds) for a, b in pairwise(times)]
        latency = list(_latencies(lake, entry.name, since))
        grid.add_row(
            entry.name, f"{schedule.seconds:g}", str(len(times)), *_spread(late), *_spread(latency)
        )
    CONSOLE.print(grid)


def _latencies(lake: Lake, table: str, since: float) -> Iterator[float]:
    """From the commit of each new version of a source to the commit that reflects it."""
    own = [
        (state, stamp)
        for stamp, text in _commits(lake.location(table))
        if text is not None and (state := StreamTableState.from_json(text)) is not None
    ]
    for (before, _), (after, stamp) in pairwise(own):
        for source, version in after.frontier.items():
            stamps = [each for each, _ in _commits(lake.location(source))]
            came = range(before.frontier.get(source, version) + 1, version + 1)
            yield from (stamp - stamps[each] for each in came if stamps[each] > since)


@cache
def _commits(location: str) -> list[tuple[float, str | None]]:
    """Time and user metadata of each commit of a table, oldest first."""
    history = DeltaTable(location).history()
    return [(each["timestamp"] / 1000, each.get("userMetadata")) for each in reversed(history)]


def _spread(values: list[float]) -> tuple[str, str, str]:
    if len(values) < 2:
        return ("", "", "")
    p95 = statistics.quantiles(values, n=20, method="inclusive")[-1]
    return (f"{statistics.median(values):.1f}", f"{p95:.1f}", f"{max(values):.1f}")


def _runs(instance: dg.DagsterInstance) -> list[tuple[float, str, set[str]]]:
    """Each run with its start, its status, and the actions of its refreshes."""
    found: list[tuple[float, str, set[str]]] = []
    for record in instance.get_run_records():
        run = record.dagster_run
        events = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        actions = {
            str(event.asset_materialization.metadata[metadata.ACTION].value)
            for event in events
            if event.asset_materialization is not None
        }
        found.append((record.create_timestamp.timestamp(), run.status.value, actions))
    return sorted(found)


def _print_runs(runs: list[tuple[float, str, set[str]]], since: float) -> None:
    statuses = [status for _, status, _ in runs]
    counts = ", ".join(f"{statuses.count(each)} {each}" for each in sorted(set(statuses)))
    idle = [at for at, status, actions in runs if status == "SUCCESS" and actions <= {"NO_DATA"}]
    CONSOLE.print(f"{len(runs)} runs: {counts}")
    after = sum(at > since for at in idle)
    CONSOLE.print(f"runs in which nothing was to do: {len(idle)}, after the first minutes {after}")


def _print_errors(killed: dict[str, float]) -> None:
    for name, at in killed.items():
        CONSOLE.print(f"killed at {time.strftime('%H:%M:%S', time.localtime(at))}: {name}")
    log = (FOLDER / "dagster.log").read_text(errors="replace").splitlines()
    errors = [line for line in log if _ERRORS.search(line)]
    CONSOLE.print(f"errors in the log of dagster: {len(errors)}")
    for line in errors[:20]:
        CONSOLE.print(f"  {line}", markup=False)


if __name__ == "__main__":
    typer.run(main)
