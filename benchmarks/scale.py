"""How late many stream tables are whose sources all change every second.

    python -m benchmarks.scale [--tables 100] [--sources 10] [--seconds 60] [--driver worker]

Each source gets a commit of ten rows a second. A tenth of the tables of a source read another
stream table of it; the others filter, sum, or join. For each commit, the time is taken until the
last table over its source reflects it. Beside it stand the cores of the worker and of Spark, and
what else may be the limit: how many tables waited for a place among those that run, and the seconds
of a refresh.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import typer
from deltalake import write_deltalake
from rich.table import Table

from benchmarks.drivers import WORKER, start
from benchmarks.results import CONSOLE
from benchmarks.worker import quantiles
from dagster_streamtables import Lake
from dagster_streamtables.runtime.model.table_state import StreamTableState

_SHAPES = (
    "SELECT id, amount FROM source{s} WHERE amount > {n}",
    "SELECT customer, sum(amount) AS total FROM source{s} WHERE amount > {n} GROUP BY customer",
    "SELECT o.id, c.region, o.amount FROM source{s} AS o JOIN customers AS c ON o.customer = c.id "
    "WHERE o.amount > {n}",
)
_CUSTOMERS, _ROWS = 1000, 10


@dataclass
class Scale:
    """The sources, and the tables over them."""

    folder: Path
    tables: int
    sources: int
    schedule: str
    commits: int = 0

    def __post_init__(self) -> None:
        (self.folder / "tables").mkdir()
        (self.folder / "lake").mkdir()
        self.lake = Lake(self.folder / "lake")
        ids = range(_CUSTOMERS)
        customers = pa.table({"id": [*ids], "region": [f"r{each % 20}" for each in ids]})
        write_deltalake(self.lake.location("customers"), customers)
        for source in range(self.sources):
            self.commit(source)
        self.over: dict[str, int] = {}
        for number in range(self.tables):
            self._declare(number)

    def commit(self, source: int) -> None:
        """Ten rows more in one source."""
        begin = self.commits * _ROWS
        ids = range(begin, begin + _ROWS)
        rows = {
            "id": [*ids],
            "customer": [each * 7919 % _CUSTOMERS for each in ids],
            "amount": [each % 100 for each in ids],
        }
        write_deltalake(self.lake.location(f"source{source}"), pa.table(rows), mode="append")
        self.commits += 1

    def _declare(self, number: int) -> None:
        source, name = number % self.sources, f"t{number}"
        query = _SHAPES[number // self.sources % len(_SHAPES)].format(
            s=source, n=number // self.sources
        )
        if number // self.sources % 10 == 9:  # over the second table of its source, which sums
            query = f"SELECT count(*) AS n, sum(total) AS total FROM t{self.sources + source}"
        self.over[name] = source
        path = self.folder / "tables" / f"{name}.sql"
        path.write_text(f"-- schedule: {self.schedule}\n{query}\n")

    def reached(self, name: str) -> list[tuple[int, float]]:
        """For each version of a table, the version of its source that it reflects, and when."""
        found: list[tuple[int, float]] = []
        for path in self._commits(name):
            state = _state(path)
            if state is not None:
                found.append((self._source_version(name, state), path.stat().st_mtime))
        return found

    def _source_version(self, name: str, state: StreamTableState) -> int:
        [read] = [each for each in state.frontier if each != "customers"]
        if read.startswith("source"):
            return state.frontier[read]
        for version in range(state.frontier[read], -1, -1):
            above = _state(self._log(read) / f"{version:020}.json")
            if above is not None:
                return self._source_version(read, above)
        return -1

    def written(self, source: int) -> dict[int, float]:
        return {int(p.stem): p.stat().st_mtime for p in self._commits(f"source{source}")}

    def newest(self, name: str) -> int:
        """The newest version of its source that a table reflects."""
        for path in reversed([*self._commits(name)]):
            state = _state(path)
            if state is not None:
                return self._source_version(name, state)
        return -1

    def _commits(self, name: str) -> Iterator[Path]:
        paths = self._log(name).glob("*.json")
        yield from sorted(path for path in paths if path.stem.isdigit())

    def _log(self, name: str) -> Path:
        return Path(self.lake.location(name)) / "_delta_log"


def main(
    tables: int = 100,
    sources: int = 10,
    seconds: float = 60.0,
    schedule: str = "on change",
    driver: str = WORKER,
) -> None:
    """Measure, and print the table."""
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        scale = Scale(Path(folder), tables, sources, schedule)
        started = start(driver, scale.folder, scale.folder / "tables", scale.folder / "lake")
        try:
            _until(scale)
            first = {each: len(scale.written(each)) for each in range(sources)}
            busy, began = started.busy(), time.monotonic()
            _commit(scale, seconds)
            lasted = time.monotonic() - began
            cores, load = (started.busy() - busy) / lasted, psutil.getloadavg()[0]
            _until(scale)
        finally:
            started.stop()
        _print(scale, first, cores, load, (scale.folder / f"{driver}.log").read_text())


def _commit(scale: Scale, seconds: float) -> None:
    began = time.monotonic()
    for second in range(int(seconds)):
        for source in range(scale.sources):
            at = began + second + source / scale.sources
            time.sleep(max(0.0, at - time.monotonic()))
            scale.commit(source)


def _until(scale: Scale) -> None:
    end = time.monotonic() + 1800
    newest = {each: max(scale.written(each)) for each in range(scale.sources)}
    for name, source in scale.over.items():
        while scale.newest(name) < newest[source]:
            if time.monotonic() > end:
                raise SystemExit(f"{name} is not fresh after half an hour")
            time.sleep(0.5)


def _print(scale: Scale, first: dict[int, int], cores: float, load: float, log: str) -> None:
    ages: dict[tuple[int, int], float] = defaultdict(float)
    refreshes = 0
    for name, source in scale.over.items():
        written, done = scale.written(source), -1
        for version, at in scale.reached(name):
            for each in range(max(done + 1, first[source]), version + 1):
                ages[source, each] = max(ages[source, each], at - written[each])
            refreshes += version > done >= first[source]
            done = max(done, version)
    p50, p95, most = quantiles([*ages.values()])
    took = [float(each) for each in re.findall(r"rows in ([\d.]+) s", log)] or [0.0]
    shown = Table(
        "tables", "sources", "commits", "refreshes", "p50 s", "p95 s", "max s", "a refresh s",
        "cores", "load",
        title="Commit to a source → visible in the last table over it",
    )  # fmt: skip
    shown.add_row(
        str(scale.tables), str(scale.sources), str(len(ages)), str(refreshes), f"{p50:.2f}",
        f"{p95:.2f}", f"{most:.2f}", f"{statistics.median(took):.2f}", f"{cores:.1f}",
        f"{load:.1f}",
    )  # fmt: skip
    CONSOLE.print(shown)


def _state(path: Path) -> StreamTableState | None:
    for line in path.read_text().splitlines() if path.is_file() else ():
        info = json.loads(line).get("commitInfo")
        if info is not None:
            return StreamTableState.from_json(info.get("userMetadata") or "")
    return None


if __name__ == "__main__":
    typer.run(main)
