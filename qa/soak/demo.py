"""The demo left alone for an hour: does anything grow, is any table wrong, does the UI say so?

    python -m qa.soak.demo --minutes 60

`example_defs.demo` runs as `make demo` does: the replay, `dagster dev`, and the worker over both
code locations, while rows of the org chart change in PostgreSQL. Writes down once a minute the
memory of the worker, of Spark and of Dagster, and the size of Dagster's databases. At ten random
moments and at the end, compares every stream table with plain Spark, and the last materialization
that Dagster shows with the table; ends with 1 if one is wrong.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import dagster as dg
import psutil
import psycopg
import typer
from deltalake import DeltaTable
from rich.console import Console

from dagster_streamtables import Lake, StreamTable, load_tables
from dagster_streamtables.catalog import build_catalog
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.spark.local_server import server_status
from example_defs.demo import PROJECT
from qa.soak.samples import show, show_names, summary

DEMO = PROJECT / ".demo"
TABLES = (PROJECT / "example_defs/tables", PROJECT / "example_defs/org_chart/tables")
ORG_CHART = f"postgresql://postgres@/org_chart?host={DEMO / 'postgres'}"
DAYS = 270
"""That the replay has left when the demo starts."""
START = 600.0
"""Seconds in which the demo makes all of its tables."""
PACE = 2.0
"""Seconds between two changes of the org chart."""
_DAGSTER = r"dagster(\._daemon|_webserver| dev| api grpc| code-server)"
UNREPORTED = 60.0
"""Seconds after which Dagster has heard of a commit: reports come every 10 s, at most 30."""


@dataclass(frozen=True)
class Sample:
    """The state of things after some minutes. Memory is in MB."""

    minute: float
    worker: float
    spark: float
    dagster: float
    """Webserver, daemon and code servers."""
    databases: float
    """Size of Dagster's databases in MB."""
    materializations: int
    """Events of all stream tables, at most 10,000 each."""
    commits: int
    """Of all stream tables, as their newest versions count them."""


class Watch:
    """A running demo, its stream tables, and what Dagster knows of them."""

    def __init__(self, demo: psutil.Process, console: Console) -> None:
        self.demo, self.console = demo, console
        self.lake = Lake(DEMO / "lake")
        catalogs = [build_catalog(load_tables(folder), min_schedule_seconds=1) for folder in TABLES]
        self.tables = {
            entry.key: entry.examined.table for found in catalogs for entry in found.sound
        }
        self.wrong: list[str] = []
        self.compared = 0

    def sample(self, minute: float, instance: dg.DagsterInstance) -> Sample:
        server = server_status()
        below = self.demo.children(recursive=True)
        worker = [each for each in below if "dagster_streamtables.cli worker" in _command(each)]
        dagster = [each for each in below if re.search(_DAGSTER, _command(each))]
        found = Sample(
            minute=minute,
            worker=sum(map(_memory, worker)),
            spark=server.memory_bytes / 2**20 if server else 0,
            dagster=sum(map(_memory, dagster)),
            databases=sum(p.stat().st_size for p in (DEMO / "dagster").rglob("*.db*")) / 2**20,
            materializations=sum(
                len(instance.fetch_materializations(key, limit=10_000).records)
                for key in self.tables
            ),
            commits=sum(self.lake.version(t.name) or 0 for t in self.tables.values()),
        )
        show(found, self.console)
        return found

    def check(self, instance: dg.DagsterInstance) -> None:
        """Every table against its query, and what Dagster shows against the table."""
        for key, table in self.tables.items():
            comparison = self.lake.check(table)
            if not comparison.equal:
                self.wrong.append(f"{table.name} is not its query: {comparison}")
            self.wrong += self._contradictions(key, table, instance)
            self.compared += 1

    def _contradictions(
        self, key: dg.AssetKey, table: StreamTable, instance: dg.DagsterInstance
    ) -> Iterator[str]:
        now = time.time()
        log = DeltaTable(self.lake.location(table.name))
        event = instance.get_latest_materialization_event(key)
        made = event.asset_materialization if event else None
        if made is None:
            yield f"{table.name} has {log.version()} versions, and no materialization"
            return
        version = made.metadata[metadata.VERSION].value
        assert isinstance(version, int)
        committed = [
            each["version"]
            for each in log.history()
            if each["timestamp"] / 1000 < now - UNREPORTED and each.get("userMetadata")
        ]
        if version > log.version() or version < max(committed, default=0):
            yield (
                f"{table.name}: Dagster shows version {version}, and of {log.version()} versions "
                f"{max(committed)} is a minute old"
            )
        rows = made.metadata.get(metadata.ROW_COUNT)
        held = self._rows(table, version)
        if rows is not None and rows.value != held:
            yield f"{table.name}: Dagster shows {rows.value} rows at version {version}, not {held}"

    def _rows(self, table: StreamTable, version: int) -> int:
        spark = self.lake.access.session(table.name).spark
        reader = spark.read.format("delta").option("versionAsOf", version)
        return reader.load(self.lake.location(table.name)).count()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _memory(process: psutil.Process) -> float:
    try:
        return process.memory_info().rss / 2**20
    except psutil.Error:
        return 0.0


def _change_the_org_chart(number: int) -> None:
    """A salary, and now and then a department's name."""
    with psycopg.connect(ORG_CHART, autocommit=True) as connection:
        connection.execute(
            "UPDATE employees SET salary = salary + 1 WHERE id = %s", [1 + number % 7]
        )
        if number % 10 == 0:
            connection.execute("UPDATE departments SET name = %s WHERE id = 2", [f"R&D {number}"])


@contextmanager
def _demo(seconds: float) -> Iterator[psutil.Process]:
    """The demo from its beginning, so slow that the replay lasts as long."""
    command = [sys.executable, "-m", "example_defs.demo", "--fresh", "--pace", str(seconds / DAYS)]
    process = subprocess.Popen(command, cwd=PROJECT)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(120)


def _wait_for_tables(watch: Watch) -> None:
    end = time.monotonic() + START
    while any(watch.lake.version(table.name) is None for table in watch.tables.values()):
        if watch.demo.status() == psutil.STATUS_ZOMBIE:
            raise SystemExit("the demo ended")
        if time.monotonic() > end:
            raise SystemExit(f"a stream table is not there after {START:g} seconds")
        time.sleep(1)


def _watched(watch: Watch, seconds: float, seed: int) -> list[Sample]:
    samples: list[Sample] = []
    began = time.monotonic()
    chance = random.Random(seed)
    moments = sorted(chance.uniform(seconds / 12, seconds) for _ in range(10))
    changes = 0
    with dg.DagsterInstance.get() as instance:
        while (passed := time.monotonic() - began) < seconds:
            if passed >= 60 * (len(samples) + 1):
                samples.append(watch.sample(passed / 60, instance))
            if moments and passed >= moments[0]:
                moments.pop(0)
                watch.check(instance)
            _change_the_org_chart(changes)
            changes += 1
            time.sleep(PACE)
        watch.check(instance)
        samples.append(watch.sample((time.monotonic() - began) / 60, instance))
    return samples


def main(
    minutes: Annotated[float, typer.Option(help="How long, from the first materialization.")] = 60,
    seed: Annotated[int, typer.Option(help="Of the moments at which tables are compared.")] = 0,
) -> None:
    """Runs the demo, and shows what grows and what is wrong."""
    console = Console()
    os.environ["DAGSTER_HOME"] = str(DEMO / "dagster")
    os.environ.setdefault("STREAMTABLES_HOME", str(DEMO / "spark"))
    with _demo(minutes * 60) as demo:
        watch = Watch(demo, console)
        _wait_for_tables(watch)
        show_names(Sample, console)
        samples = _watched(watch, minutes * 60, seed)
    console.print(summary(Sample, samples))
    for each in watch.wrong:
        console.print(each, style="red", markup=False)
    console.print(f"{watch.compared} comparisons of {len(watch.tables)} tables")
    raise typer.Exit(bool(watch.wrong))


if __name__ == "__main__":
    typer.run(main)
