"""`python -m qa.races`: refreshes that race, until so many versions are committed.

    python -m qa.races --versions 1000
    python -m qa.races --versions 100 --processes 1 --threads 8 --servers 1

It ends with 1 if a version is not what its query says at the frontier of that version.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.jars import delta_jars
from dagster_streamtables.runtime.spark.local_server import stop_server
from dagster_streamtables.runtime.spark.session import open_session
from qa.races.lake import change, change_by_spark, make
from qa.races.refreshers import Refreshers
from qa.races.verdict import versions, wrong


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="races_"))
    homes = [folder / f"home_{number}" for number in range(options.servers)]
    try:
        _prepare(folder, homes)
        return _race(options, folder / "lake", [str(each) for each in homes])
    finally:
        for each in homes:
            os.environ["STREAMTABLES_HOME"] = str(each)
            stop_server()
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, homes: list[Path]) -> None:
    """Room for servers to which no statement is compiled: it takes longer than to run it."""
    delta_jars()
    for each in homes:
        shutil.copytree(home() / "jars", each / "jars")
    (folder / "spark-defaults.conf").write_text(
        "spark.sql.codegen.wholeStage false\nspark.sql.codegen.factoryMode NO_CODEGEN\n"
    )
    os.environ["SPARK_CONF_DIR"] = str(folder)
    os.environ["STREAMTABLES_HOME"] = str(homes[0])


def _race(options: argparse.Namespace, root: Path, homes: list[str]) -> int:
    began = time.monotonic()
    make(root, Random(options.seed))
    processes = multiprocessing.get_context("spawn")
    stop, problems = processes.Event(), processes.Queue()
    workers = [
        Refreshers(
            str(root), options.threads, options.seed + number,
            driver_rows=0 if number == 3 else None, home=homes[number % len(homes)],
        ).started(stop, problems)
        for number in range(options.processes)
    ]  # fmt: skip
    changing = change_until(root, stop, options.seed)
    told = _until_enough(root, options, problems, began)
    stop.set()
    for each in (*workers, *changing):
        each.join(120)
    told += _drained(problems)
    compared, found = wrong(open_session(), root)
    for line in (*told[:20], *found[:40]):
        print(line)
    print(f"{compared} versions compared, {len(found)} rows or orders wrong, {len(told)} errors, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if found or told else 0


def change_until(root: Path, stop: Any, seed: int) -> list[threading.Thread]:
    """Change the sources by both engines, each in a thread."""
    spark = open_session()

    def go_on(engine: str, step: Callable[[Random], None], pause: float) -> None:
        random = Random(f"{seed} {engine}")
        while not stop.is_set():
            step(random)
            time.sleep(random.random() * pause)

    steps = (
        ("delta-rs", lambda random: change(root, random), 1),
        ("spark", lambda random: change_by_spark(spark, root, random), 3),
    )
    threads = [threading.Thread(target=go_on, args=each, daemon=True) for each in steps]
    for thread in threads:
        thread.start()
    return threads


def _until_enough(
    root: Path, options: argparse.Namespace, problems: Any, began: float
) -> list[str]:
    told: list[str] = []
    said = time.monotonic()
    while versions(root) < options.versions and time.monotonic() - began < options.minutes * 60:
        time.sleep(0.5)
        told += _drained(problems)
        if time.monotonic() - said > 30:
            said = time.monotonic()
            print(
                f"{said - began:.0f} s: {versions(root)} versions, {len(told)} errors", flush=True
            )
    return told


def _drained(problems: Any) -> list[str]:
    told: list[str] = []
    try:
        while True:
            told.append(problems.get_nowait())
    except queue.Empty:
        return told


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m qa.races", description=__doc__)
    parser.add_argument("--versions", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--servers", type=int, default=2, choices=(1, 2))
    parser.add_argument("--minutes", type=float, default=60, help="at most so many")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
