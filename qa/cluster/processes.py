"""The processes of a standalone cluster: a master, workers and executors, a Connect server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from dagster_streamtables.runtime.spark.settings import connect_settings
from qa.ports import HOST, answers

_SPARK = Path(pyspark.__file__).parent
_START_SECONDS = 120.0
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Cluster:
    """A master, some workers of one core, and a Spark Connect server.

    They share the files of this machine, as those of several machines share a mount.
    """

    folder: Path
    workers: int = 2
    memory: str = "1g"
    _ports: tuple[int, int] = field(default_factory=lambda: (_free_port(), _free_port()))
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"sc://{HOST}:{self._ports[1]}"

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._ports[0]}"

    def start(self) -> None:
        self._spawn(
            "master", "spark-class", "org.apache.spark.deploy.master.Master",
            "--host", HOST, "--port", str(self._ports[0]), "--webui-port", "0",
        )  # fmt: skip
        _await_port(self._ports[0])
        for number in range(self.workers):
            self.start_worker(number)
        self.start_server()

    def start_worker(self, number: int) -> None:
        self._spawn(
            f"worker {number}", "spark-class", "org.apache.spark.deploy.worker.Worker",
            "--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", self.memory,
            "--work-dir", str(self.folder / f"work {number}"), self.master,
        )  # fmt: skip

    def start_server(self) -> None:
        """Start the Connect server, with the settings that the documentation gives."""
        properties = self.folder / "server.conf"
        settings = {
            **connect_settings(),
            "spark.connect.grpc.binding.port": str(self._ports[1]),
            "spark.sql.shuffle.partitions": str(self.workers),
            "spark.driver.host": HOST,
            "spark.driver.memory": self.memory,
            "spark.executor.memory": self.memory,
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
        }
        properties.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._spawn(
            "server", "spark-submit", "--master", self.master, "--properties-file",
            str(properties), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal",
        )  # fmt: skip
        _await_port(self._ports[1])

    def stop(self) -> None:
        for name in [*self._running][::-1]:
            self.kill(name)

    def kill(self, name: str) -> None:
        """Kill a process without notice. With a worker goes its executor."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_executor(self, number: int) -> bool:
        """Kill the executor of a worker; whether it has one. The worker starts another."""
        found = _descendants(self._running[f"worker {number}"].pid)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)

    def cpu_seconds(self) -> float:
        """The processor time of all processes that run, in seconds."""
        pids = [process.pid for process in self._running.values()]
        return sum(map(_cpu, [*pids, *(each for pid in pids for each in _descendants(pid))]))

    def _spawn(self, name: str, program: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_LOG_DIR": str(self.folder),
        }
        with (self.folder / f"{name}.log").open("ab") as said:
            self._running[name] = subprocess.Popen(
                [_SPARK / "bin" / program, *arguments], stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, env=environment, start_new_session=True,
            )  # fmt: skip


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that is stopped at the end of a block."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Cluster(folder, workers)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def _await_port(port: int) -> None:
    if not answers(port, _START_SECONDS):
        sys.exit(f"nothing listens on port {port}; see the logs of the cluster")


def _descendants(parent: int) -> list[int]:
    """Processes started by a process, and by these."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    found = [parent]
    for pid in found:
        found += [child for child, above in parents.items() if above == pid]
    return found[1:]


def _cpu(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK
    return 0.0
