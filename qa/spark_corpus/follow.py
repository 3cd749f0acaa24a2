"""What follows a query of the corpus: a stream table, a subscription, or its plan run in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, StreamTable, Subscription, subscribe
from dagster_streamtables.compiler import all_rows
from dagster_streamtables.runtime.compute.spark_engine import BoundChanges, SparkEngine
from dagster_streamtables.runtime.errors.spark_errors import row_problem, statement_problem
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.model.refresh_report import Stopwatch
from dagster_streamtables.runtime.refresh.refresh_job import prepare, with_views
from dagster_streamtables.runtime.spark.connect import arrow_rows

_COPIES = "_diff"


@dataclass(frozen=True)
class Followed:
    """One refresh, or what stands for it."""

    rows: pa.Table
    columns: Mapping[str, str]
    """Names and types, as the product has them; without types where it tells none."""
    copies: str | None = None
    changed: bool = False
    in_full: str = ""
    """Why the query was run again although its change should have been computed."""


class Follower:
    def follow(self) -> Followed:
        """Catch up with the tables."""
        raise NotImplementedError

    def close(self) -> None:
        """Of most there is nothing to close."""


class Refreshed(Follower):
    def __init__(self, lake: Lake, table: StreamTable) -> None:
        self.lake, self.table = lake, table
        self.begun = False
        lake.plan(table)

    def follow(self) -> Followed:
        done = self.lake.refresh(self.table)
        computed = done.action in (Action.DIFFERENTIAL, Action.NO_DATA, Action.SKIP)
        again = "" if computed or not self.begun else f"{done.action}: {done.reason}"
        self.begun = True
        columns = self.lake.columns(self.table.name) or {}
        stored = DeltaTable(self.lake.location(self.table.name))
        rows = stored.to_pyarrow_table(columns=list(columns))
        changed = computed and bool(done.inserted or done.deleted)
        return Followed(rows, columns, changed=changed, in_full=done.fallback or again)


class Subscribed(Follower):
    """A subscription, whose changes add up to the rows of the query."""

    def __init__(self, lake: Lake, table: StreamTable) -> None:
        self.open: Subscription = subscribe(lake, table.query)
        self.read: list[pa.Table] = []

    def follow(self) -> Followed:
        news = self.open.fetch(None, timeout=0)
        self.read.append(news)
        rows = pa.concat_tables(self.read)
        names = rows.column_names[2:]  # after the timestamp and the number of copies
        changed = len(self.read) > 1 and news.num_rows > 0
        return Followed(rows, dict.fromkeys(names, ""), copies=_COPIES, changed=changed)

    def close(self) -> None:
        self.open.close()


class Planned(Follower):
    """The compiled query over all rows: what the rules of the change are derived from."""

    def __init__(self, lake: Lake, table: StreamTable) -> None:
        self.lake, self.table = lake, table
        self.plan = lake.plan(table)

    def follow(self) -> Followed:
        try:
            return self._rows()
        except Exception as error:
            if problem := row_problem(error) or statement_problem(error):
                raise problem from error
            raise

    def _rows(self) -> Followed:
        clock = Stopwatch()
        job = prepare(with_views(self.table, self.lake._views), self.lake._catalog, until=None)
        logs = {name: source.log for name, source in job.sources.items()}
        with closing(self.lake._inputs(job, clock)) as inputs:
            inputs.prepare_for(logs.values())
            nothing_moved = BoundChanges(logs)
            engine = SparkEngine(nothing_moved, inputs)
            found = engine.rows(all_rows(self.plan, engine)).toDF(*self.plan.view.schema)
            rows, types = arrow_rows(found), dict(found.dtypes)
        columns = visible_types(types)
        return Followed(rows.select(list(columns)), columns)


FOLLOWERS: Mapping[str, Callable[[Lake, StreamTable], Follower]] = {
    "refresh": Refreshed,
    "plan": Planned,
    "subscription": Subscribed,
}


def same_columns(columns: Mapping[str, str], expected: Sequence[tuple[str, str]]) -> str:
    """How names or types differ from those of plain Spark; empty if they do not.

    >>> same_columns({"a": "int"}, [("a", "int")]), same_columns({"A": ""}, [("a", "int")])
    ('', 'names: A, not a')
    """
    names, wanted = list(columns), [name for name, _ in expected]
    if names != wanted:
        return f"names: {', '.join(names)}, not {', '.join(wanted)}"
    for name, kind in expected:
        told = columns[name].lower().replace("`", "")  # which the type of a field may have
        if told and told != kind.lower():
            return f"type of {name}: {columns[name]}, not {kind}"
    return ""
