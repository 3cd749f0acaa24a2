"""What a replication from PostgreSQL costs: copy, changes, latency, and pgbench at full speed.

    python -m benchmarks.replication [--rows 1000000] [--minutes 10]

A copy is measured beside COPY as CSV, changes beside pg_recvlogical; both write what they read to
nowhere. Then a writer commits a row every quarter of a second or so, and it is taken how long each
is on its way into the Delta table. Last, pgbench runs at full speed, while a process follows its
four tables; how far it is behind is told, and how long it takes to catch up. Targets are compared
with their origins.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import typer
from deltalake import DeltaTable
from rich.table import Table

from benchmarks.postgres import Server, started
from benchmarks.results import CONSOLE, Figure, Results, print_figures
from dagster_streamtables import FromPostgres, Lake, Replication, Replications

_TABLE = """CREATE TABLE {name} (id bigint PRIMARY KEY, customer int, amount numeric(12,2),
    note text, at timestamptz)"""
_ROWS = """INSERT INTO {name} SELECT i, i % 1000, i * 0.37, 'note number ' || i,
    '2024-01-01Z'::timestamptz + i * interval '1s' FROM generate_series({first}, {last}) AS i"""
_PGBENCH = ("accounts", "branches", "tellers", "history")


def main(rows: int = 1_000_000, minutes: float = 10, runs: int = 3, scale: int = 10) -> None:
    """Measure, and print the tables.

    Args:
        rows: Of the table that is copied, and of its changes.
        minutes: For which pgbench writes.
        runs: How often copy and changes are measured.
        scale: Of pgbench: 100,000 accounts each.
    """
    results = Results("replication", rows, runs)
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as name:
        folder = Path(name)
        with started(folder) as server:
            results.figures += _copies(server, Lake(folder / "copies"), rows, runs)
            results.figures += _changes(server, Lake(folder / "changes"), rows, runs)
            results.figures += _latencies(server, Lake(folder / "latency"))
            results.figures += _pgbench(server, Lake(folder / "pgbench"), minutes, scale)
    results.store()
    print_figures(results, CONSOLE)


def _copies(server: Server, lake: Lake, rows: int, runs: int) -> list[Figure]:
    server.run(_TABLE.format(name="t"), _ROWS.format(name="t", first=1, last=rows))
    server.run("CREATE PUBLICATION p FOR TABLE t", "VACUUM ANALYZE t")
    csv = [_seconds(lambda: server.call("psql", "-c", r"\copy t TO /dev/null CSV", "postgres"))]
    ours: list[float] = []
    for i in range(runs):
        csv.append(
            _seconds(lambda: server.call("psql", "-c", r"\copy t TO /dev/null CSV", "postgres"))
        )
        declared = Replication(f"copy{i}", FromPostgres(server.address, ("p",)), schema=f"c{i}")
        Replications(lake).create(declared)
        ours.append(_seconds(lambda name=declared.name: Replications(lake).refresh(name)))
        _require_equal(server, lake, "t", f"c{i}.t")
        Replications(lake).drop(declared.name)
    return [
        _figure(f"COPY of {rows:,} rows to CSV", csv[1:], rows),
        _figure(f"copy of {rows:,} rows into a Delta table", ours, rows),
    ]


def _changes(server: Server, lake: Lake, rows: int, runs: int) -> list[Figure]:
    """Half are inserted, a third is updated, a sixth is deleted, in a thousand transactions."""
    server.run(_TABLE.format(name="u"), "CREATE PUBLICATION q FOR TABLE u")
    Replications(lake).create(Replication("changes", FromPostgres(server.address, ("q",))))
    Replications(lake).refresh("changes")
    server.run("SELECT pg_create_logical_replication_slot('received', 'pgoutput')")
    received, ours = [], []
    for i in range(runs):
        _write(server, i * rows, rows)
        [(end,)] = server.run("SELECT pg_current_wal_flush_lsn()")
        received.append(_seconds(lambda end=end: _receive(server, end)))
        ours.append(_seconds(lambda: _catch_up(lake, "changes")))
        _require_equal(server, lake, "u", "public.u")
    Replications(lake).drop("changes")
    server.run("SELECT pg_drop_replication_slot('received')")
    return [
        _figure(f"pg_recvlogical of {rows:,} changes", received, rows),
        _figure(f"{rows:,} changes into a Delta table", ours, rows),
    ]


def _write(server: Server, first: int, rows: int) -> None:
    step = rows // 1000
    with psycopg.connect(server.address) as connection:
        for begin in range(first, first + rows, step):
            last = begin + step // 2
            for statement in (
                _ROWS.format(name="u", first=begin + 1, last=last),
                f"UPDATE u SET amount = -1 WHERE id > {begin} AND id <= {begin + step // 3}",
                f"DELETE FROM u WHERE id > {last - step // 6} AND id <= {last}",
            ):
                connection.execute(statement.encode())
            connection.commit()


def _receive(server: Server, end: str) -> None:
    server.call(
        "pg_recvlogical", "-d", "postgres", "--slot", "received", "--start", "-f", "/dev/null",
        "-o", "proto_version=1", "-o", "publication_names=q", "--endpos", end, "--no-loop",
    )  # fmt: skip


def _catch_up(lake: Lake, name: str) -> None:
    while not Replications(lake).refresh(name).complete:
        pass


def _latencies(server: Server, lake: Lake, times: int = 100) -> list[Figure]:
    """From when a commit is answered until the commit of the target that has its row."""
    server.run("CREATE TABLE v (id int PRIMARY KEY, note text)", "CREATE PUBLICATION r FOR TABLE v")
    Replications(lake).create(Replication("latency", FromPostgres(server.address, ("r",))))
    Replications(lake).refresh("latency")
    committed: list[float] = []
    writer = threading.Thread(target=_commit_now_and_then, args=(server, times, committed))
    writer.start()
    seconds: list[float] = []
    while len(seconds) < times:
        done = Replications(lake).refresh("latency").tables["public.v"].inserted
        now = time.perf_counter()
        seconds += [now - committed[len(seconds) + i] for i in range(done)]
    writer.join()
    Replications(lake).drop("latency")
    ordered = sorted(seconds)
    p95 = [ordered[int(0.95 * len(ordered))]]
    return [
        _figure("from the commit to the row, p50", [statistics.median(ordered)], None),
        _figure("from the commit to the row, p95", p95, None),
    ]


def _commit_now_and_then(server: Server, times: int, committed: list[float]) -> None:
    chance = random.Random(0)
    with psycopg.connect(server.address, autocommit=True) as connection:
        for i in range(times):
            time.sleep(chance.uniform(0.05, 0.5))
            committed.append(time.perf_counter())  # it may be read before the answer
            connection.execute("INSERT INTO v VALUES (%s, 'a row')", [i])
            committed[i] = time.perf_counter()


def _pgbench(server: Server, lake: Lake, minutes: float, scale: int) -> list[Figure]:
    server.call("pgbench", "-i", "-q", "-s", str(scale), "postgres")
    tables = [f"pgbench_{each}" for each in _PGBENCH]
    server.run(
        "ALTER TABLE pgbench_history REPLICA IDENTITY FULL",
        "ALTER DATABASE postgres SET synchronous_commit = off",  # as fast as the processor is
        f"CREATE PUBLICATION bench FOR TABLE {', '.join(tables)}",
    )
    Replications(lake).create(Replication("bench", FromPostgres(server.address, ("bench",))))
    Replications(lake).refresh("bench")
    seconds = str(int(minutes * 60))
    writer = server.start("pgbench", "-n", "-c", "2", "-T", seconds, "postgres")
    began, changes, behind = time.perf_counter(), 0, []
    while writer.poll() is None:
        done = Replications(lake).refresh("bench")
        changes += sum(each.inserted + each.updated for each in done.tables.values())
        lag = Replications(lake).lag("bench")
        behind.append((time.perf_counter() - began, lag.seconds, (lag.bytes or 0) / 2**20))
    caught = _seconds(lambda: _catch_up(lake, "bench"))
    said = writer.communicate()[0]
    for table in tables:
        _require_equal(server, lake, table, f"public.{table}")
    _print_lag(behind, minutes)
    tps = next(line.split()[2] for line in said.splitlines() if line.startswith("tps"))
    lags = [each for _, each, _ in behind]
    title = f"pgbench for {minutes:g} minutes at {float(tps):,.0f} transactions/s"
    return [
        _figure(f"{title}: seconds behind, median", lags, None),
        _figure(f"{title}: seconds behind, most", [max(lags)], None),
        _figure(f"{title}: caught up in", [caught], None),
    ]


def _print_lag(behind: list[tuple[float, float, float]], minutes: float) -> None:
    shown = Table("second", "s behind", "MB behind", title="pgbench at full speed")
    for i in range(10):
        part = [each for each in behind if each[0] // (minutes * 6) == i]
        if part:
            shown.add_row(f"{part[-1][0]:.0f}", f"{part[-1][1]:.1f}", f"{part[-1][2]:.1f}")
    CONSOLE.print(shown)


def _require_equal(server: Server, lake: Lake, table: str, target: str) -> None:
    """Count and sums of all columns that have one."""
    import pyarrow.compute as pc

    found = DeltaTable(str(lake.location(target))).to_pyarrow_table()
    names = [each.name for each in found.schema if "int" in str(each.type)]
    listed = ", ".join(["count(*)", *(f"sum({name})" for name in names)])
    [wanted] = server.run(f"SELECT {listed} FROM {table}")
    sums = (pc.sum(found[name]).as_py() for name in names)
    assert (found.num_rows, *sums) == tuple(map(_integer, wanted)), f"{target} is not {table}"


def _integer(value: object) -> int | None:
    return None if value is None else int(str(value))


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _figure(shape: str, seconds: list[float], rows: int | None) -> Figure:
    rate = {} if rows is None else {"rows/s": rows / statistics.median(seconds)}
    return Figure(shape, "replication", 0, False, seconds, {}, "", rate)


if __name__ == "__main__":
    typer.run(main)
