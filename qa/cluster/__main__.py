"""What is shown on a cluster, as commands."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import psutil
import typer

from dagster_streamtables import Lake
from dagster_streamtables.runtime.spark.local_server import ensure_server, server_status
from qa.cluster.history import TABLES, begin, change
from qa.cluster.processes import Cluster, cluster

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def cost(windows: int = 3, orders: int = 60_000, rows: int = 10, large: int = 50_000) -> None:
    """Refresh tables of all kinds on the cluster and on the local server, compare each with plain
    Spark, and print the processor time that both took, in seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = stack.enter_context(cluster(folder / "cluster"))
        ensure_server()
        sides = {
            "cluster": (Lake(folder / "a", spark=running.address), running.cpu_seconds),
            "local": (Lake(folder / "b"), _cpu_of_local_server),
        }
        for lake, _ in sides.values():
            begin(lake, orders)
        print(f"{'window':14}{'cluster':>10}{'local':>10}{'ratio':>8}")
        _print_cost("first", sides)
        for window in range(windows):
            for lake, _ in sides.values():
                change(lake, Random(window), window, rows)
            _print_cost(f"{rows} rows", sides)
        for lake, _ in sides.values():
            change(lake, Random(windows), windows, large)
        _print_cost(f"{large} rows", sides)
        for lake, _ in sides.values():
            _compare(lake)


def _cpu_of_local_server() -> float:
    status = server_status()
    assert status is not None
    times = psutil.Process(status.pid).cpu_times()
    return times.user + times.system


def _print_cost(name: str, sides: dict[str, tuple[Lake, Callable[[], float]]]) -> None:
    took: dict[str, float] = {}
    for side, (lake, cpu) in sides.items():
        before = cpu()
        for outcome in lake.refresh_all(TABLES, max_concurrent=1):
            if outcome.error:
                raise outcome.error
        took[side] = cpu() - before
    ratio = took["cluster"] / took["local"]
    print(f"{name:14}{took['cluster']:10.1f}{took['local']:10.1f}{ratio:8.2f}", flush=True)


def _compare(lake: Lake) -> None:
    for table in TABLES:
        found = lake.check(table)
        if not found.equal:
            sys.exit(f"{table.name} is not what plain Spark returns: {found}")
    print(f"{len(TABLES)} tables equal what plain Spark returns", flush=True)


@app.command()
def kills(number: int = 20, seed: int = 1, orders: int = 20_000, compare_every: int = 5) -> None:
    """Kill an executor, a worker, the Connect server or the client in each window, at a random
    moment of its refreshes, and start it again; compare the tables with plain Spark."""
    random = Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = stack.enter_context(cluster(folder / "cluster"))
        lake = Lake(folder / "lake", spark=running.address)
        begin(lake, orders)
        _refresh(lake, running)
        for window in range(number):
            change(lake, random, window, 1000)
            victim = random.choice(["executor", "worker", "server", "client"])
            began = time.monotonic()
            _refresh(lake, running, victim, random)
            print(f"{window}: {victim}, {time.monotonic() - began:.0f} s", flush=True)
            if (window + 1) % compare_every == 0 or window + 1 == number:
                _compare(Lake(lake.root, spark=running.address))


def _refresh(lake: Lake, running: Cluster, victim: str = "", random: Random | None = None) -> None:
    command = [sys.executable, "-m", "qa.cluster.client", str(lake.root), running.address]
    client = subprocess.Popen(command)
    if random is not None:
        time.sleep(random.uniform(3, 12))
        number = random.randrange(running.workers)
        if victim == "executor":
            running.kill_executor(number)
        elif victim == "worker":
            running.kill(f"worker {number}")
            time.sleep(random.uniform(0, 5))
            running.start_worker(number)
        elif victim == "server":
            running.kill("server")
            time.sleep(random.uniform(0, 20))
            running.start_server()
        else:
            client.kill()
            client.wait()
            client = subprocess.Popen(command)
    if client.wait(900):
        sys.exit("the refreshes failed")


if __name__ == "__main__":
    app()
