"""Plays the year into Delta tables, as it came: `python -m example_defs.replay --help`.

Each step moves the clock and makes at most one commit in each source table. A commit carries the
clock as its Delta transaction number, so the tables themselves know how far they are: a replay that
was killed, even between two tables of a step, goes on where it was and ends with the same tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from example_defs.dataset import END, START, Source, sources
from example_defs.followers import Followers

_APP = "replay"
_TIDY_EVERY = 28
"""Steps between two compactions of a table, which keep its files few and change no row."""
_SCHEDULED_SECONDS = 90.0
"""The longest schedule of the demo, and the time of a refresh."""


@dataclass(frozen=True)
class Commit:
    """What one step did to one table."""

    source: str
    clock: datetime
    inserted: int
    updated: int
    deleted: int


class Replay:
    """The year under `root`, as far as it has been played.

    The first one over an empty root creates the tables as they were at the start of the year.

    Args:
        root: The lake's folder; the tables are those of its schema `air`.
        step: How far the clock moves between two commits of a table.
    """

    def __init__(self, root: str | Path, *, step: timedelta = timedelta(hours=24)) -> None:
        if step < timedelta(seconds=1):
            raise ValueError(f"step is {step}, and the clock counts whole seconds from 1 up")
        self._folder, self._step = Path(root) / "air", step
        self._tables = [_Table(source, self._folder / source.name) for source in sources()]

    @property
    def clock(self) -> datetime:
        """The end of the last whole step: that of the flights, which are written last."""
        return self._tables[-1].clock

    def advance(self, until: datetime) -> list[Commit]:
        """Plays step by step as far as a next step does not pass `until`."""
        return [commit for step in self.steps(until) for commit in step]

    def steps(self, until: datetime) -> Iterator[list[Commit]]:
        """The same, one step at a time."""
        done = (self.clock - START) // self._step
        while (clock := START + (done + 1) * self._step) <= until:
            yield [commit for table in self._tables if (commit := table.move(clock))]
            done += 1
            if done % _TIDY_EVERY == 0:
                for table in self._tables:
                    table.tidy()


class _Table:
    """One source table and the past it is played from."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source, self._folder = source, folder
        if not DeltaTable.is_deltatable(str(folder)):
            self._create()
        self._delta = DeltaTable(folder)
        self.clock = datetime.fromtimestamp(self._delta.transaction_version(_APP) or 0, UTC)

    def _create(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(
            self._folder,
            self._source.at(START),
            partition_by=self._source.partition,
            configuration={"delta.enableChangeDataFeed": str(self._source.change_feed).lower()},
            commit_properties=_stamp(START),
        )

    def move(self, clock: datetime) -> Commit | None:
        """Brings the table to `clock` in one commit; None where it is there or nothing happened."""
        if clock <= self.clock:
            return None
        source, after, self.clock = self._source, self.clock, clock
        came, ended = source.came(after, clock), source.ended(after, clock)
        still = pc.field(source.key).isin(came[source.key].combine_chunks())
        gone = ended.filter(~still).select([source.key])
        if not len(came) and not len(gone):
            return None
        if len(ended):
            self._merge(came, gone, clock)
        else:
            stamp = _stamp(clock)
            write_deltalake(self._delta, came, mode="append", commit_properties=stamp)
        updated = len(ended) - len(gone)
        return Commit(source.name, clock, len(came) - updated, updated, len(gone))

    def _merge(self, came: pa.Table, gone: pa.Table, clock: datetime) -> None:
        key = self._source.key
        rows = came.append_column("gone", pa.repeat(False, len(came)))
        left = gone.append_column("gone", pa.repeat(True, len(gone)))
        rows = pa.concat_tables([rows, left], promote_options="default")
        # The bounds let delta-rs skip the files of earlier months.
        keys = rows[key].to_pylist()
        bounds = f"(t.{key} >= {min(keys)!r}) AND (t.{key} <= {max(keys)!r})"
        columns = {name: f"s.{name}" for name in came.column_names}
        (
            self._delta.merge(
                rows,
                predicate=f"(t.{key} = s.{key}) AND {bounds}",
                source_alias="s",
                target_alias="t",
                commit_properties=_stamp(clock),
            )
            .when_matched_delete(predicate="s.gone")
            .when_matched_update(columns, predicate="NOT s.gone")
            .when_not_matched_insert(columns, predicate="NOT s.gone")
            .execute()
        )

    def tidy(self) -> None:
        self._delta.optimize.compact(target_size=4_000_000)


def _stamp(clock: datetime) -> CommitProperties:
    """The clock, in a commit."""
    return CommitProperties(
        custom_metadata={"clock": clock.isoformat()},
        app_transactions=[Transaction(_APP, int(clock.timestamp()))],
    )


def main(
    root: Annotated[Path, typer.Option(help="The lake's folder.")] = Path(".demo/lake"),
    step_hours: Annotated[float, typer.Option(help="Replayed hours in a step.")] = 24,
    pace: Annotated[float, typer.Option(help="Seconds to wait between two steps.")] = 0,
    until: Annotated[datetime, typer.Option(help="Where to stop (UTC).")] = END,
    tables: Annotated[
        Path | None,
        typer.Option(help="Pause while stream tables of this folder are three steps behind."),
    ] = None,
) -> None:
    """Plays flights, weather, planes, airlines and airports of 2013 into Delta tables."""
    replay = Replay(root, step=timedelta(hours=step_hours))
    behind = max(3 * pace, _SCHEDULED_SECONDS)
    wait = Followers(root, tables, seconds=behind).wait if tables else lambda: None
    print(f"the clock stands at {replay.clock:%Y-%m-%d %H:%M}", flush=True)
    wait()
    for step in replay.steps(until.replace(tzinfo=UTC)):
        if step:
            told = (f"{c.source} +{c.inserted} ~{c.updated} -{c.deleted}" for c in step)
            print(f"{step[0].clock:%Y-%m-%d %H:%M}  {'   '.join(told)}", flush=True)
        time.sleep(pace)
        wait()


if __name__ == "__main__":
    typer.run(main)
