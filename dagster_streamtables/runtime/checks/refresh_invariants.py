"""Could refreshes have produced a stored table? Its log and its hidden columns tell.

This runs no query and reads no source: it reads logs, and Spark counts the rows of the stored table
and of its intermediate tables in one pass each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.amounts import count
from dagster_streamtables.compiler import Invariants, Plan, RowInvariant
from dagster_streamtables.runtime.compute.spark_relations import Relations
from dagster_streamtables.runtime.delta.arrow import python_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.source_change import change_between
from dagster_streamtables.runtime.model.table_state import (
    IntermediateState,
    SourceState,
    TableWithState,
    application,
    read_state,
)
from dagster_streamtables.runtime.refresh.intermediate_tables import location_of
from dagster_streamtables.runtime.spark.connect import arrow_rows

SAMPLE = 20
"""Number of rows of each table that are shown."""


@dataclass(frozen=True)
class Violation:
    """A property of a stored table that no refresh produces."""

    table: str
    """The stream table, or the intermediate table concerned."""
    what: str
    rows: int | None = None
    """The number of rows or keys concerned; None if it does not concern rows."""

    def __str__(self) -> str:
        many = "" if self.rows is None else f" ({self.rows} of them)"
        return f"{self.table}: {self.what}{many}"


@dataclass(frozen=True)
class Findings:
    """The violations in a stored table."""

    table: str
    version: int
    """The Delta version that was examined."""
    violations: tuple[Violation, ...] = ()
    sample: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Some of the rows, with ``__table`` and ``__broken``."""
    left_out: str = ""
    """Why the rows were not examined; empty if they were."""
    seconds: float = 0.0


@dataclass(frozen=True)
class PlannedTable:
    """A stored table with the plan by which it was built."""

    name: str
    stored: TableWithState
    plan: Plan | None
    """None if unknown, because the definition has changed since."""


def check_invariants(
    planned: PlannedTable, sources: Mapping[str, TableLog | None], logs: Logs, relations: Relations
) -> Findings:
    """Examine a stored table, given the newest versions of its sources."""
    begin = time.perf_counter()
    violations = [*_of_the_log(planned, sources)]
    account = planned.stored.state.account
    if account.fallbacks > 1:  # one may be chance, such as an overflow in rows that never join
        said = f"its change could not be computed {account.fallbacks} times in a row"
        what = f"{said}: {account.fallback or 'see its history'}"
        violations.append(Violation(planned.name, what))
    tables = [planned]
    for name, kept in planned.stored.state.intermediates.items():
        below = _intermediate(planned, name, kept, logs)
        if isinstance(below, Violation):
            violations.append(below)
            continue
        violations += _out_of_step(planned, below, sources)
        tables.append(below)
    sample: list[dict[str, Any]] = []
    for each in tables:
        found, rows = _of_the_rows(each, each.plan, relations) if each.plan else ([], [])
        violations += found
        sample += rows
    return Findings(
        table=planned.name,
        version=planned.stored.log.version,
        violations=tuple(violations),
        sample=sample,
        left_out="" if planned.plan else "the definition changed since the last refresh",
        seconds=time.perf_counter() - begin,
    )


def _of_the_log(
    planned: PlannedTable, sources: Mapping[str, TableLog | None]
) -> Iterator[Violation]:
    stored, state = planned.stored, planned.stored.state
    if stored.disturbed:
        yield Violation(planned.name, "rows were changed by another writer since the last refresh")
    counted = stored.log.transaction(application(state.table))
    if counted is not None and counted != state.sequence:
        yield Violation(
            planned.name,
            f"the newest state is of refresh {state.sequence}, and {counted} committed",
        )
    for name, seen in state.sources.items():
        log = sources.get(name)
        if log is not None and log.id == seen.id and seen.version > log.version:
            yield Violation(
                planned.name,
                f"it reflects version {seen.version} of {name}, which is at {log.version}",
            )


def _intermediate(
    planned: PlannedTable, name: str, kept: IntermediateState, logs: Logs
) -> PlannedTable | Violation:
    """An intermediate table at the version in the frontier."""
    newest = logs.newest(location_of(planned.stored.log.location, name))
    if newest is None or newest.id != kept.id:
        return Violation(name, "the intermediate table no longer exists")
    log = newest.at(kept.version) if newest.version >= kept.version else None
    if log is None:
        return Violation(name, f"version {kept.version} of the intermediate table was deleted")
    found = read_state(log).refreshed
    if found is None:
        return Violation(name, "the intermediate table carries no state")
    plans = planned.plan.intermediates if planned.plan is not None else ()
    return PlannedTable(name, found, next((plan for plan in plans if plan.name == name), None))


def _out_of_step(
    planned: PlannedTable, below: PlannedTable, sources: Mapping[str, TableLog | None]
) -> Iterator[Violation]:
    """An intermediate table must reflect the versions of its stream table, or equal rows."""
    yield from _of_the_log(below, {})
    for name, seen in below.stored.state.sources.items():
        ours = planned.stored.state.sources.get(name)
        log = sources.get(name)
        if ours is None or seen.version == ours.version:
            continue
        if log is None or _same_rows(log, seen, ours):
            continue
        yield Violation(
            below.name,
            f"it reflects version {seen.version} of {name}, {planned.name} version {ours.version}",
        )


def _same_rows(log: TableLog, one: SourceState, other: SourceState) -> bool:
    """Whether no rows changed between two versions of a source, as far as its log goes back."""
    snapshots = [each.snapshot(log.location) for each in (one, other)]
    if not all(map(log.has, snapshots)):
        return True  # reported for the table itself
    before, after = sorted(each.version for each in snapshots)
    change = change_between(log, before, after)
    return change.lost or not change.has_changes


def _of_the_rows(
    planned: PlannedTable, plan: Plan, relations: Relations
) -> tuple[list[Violation], list[dict[str, Any]]]:
    log = planned.stored.log
    gone = [name for name in plan.stored_columns if name not in log.columns]
    if gone:
        return [Violation(planned.name, f"the stored table has no column {', '.join(gone)}")], []
    relation = relations.with_hidden_columns(log.snapshot)
    invariants = Invariants(plan, log.columns)
    found, most = invariants.rules, invariants.most_rows
    violations: list[Violation] = []
    sample: list[dict[str, Any]] = []
    if found or most is not None:
        [(rows, *counts)] = [
            tuple(row) for row in relations.sql(invariants.counts_sql(relation)).collect()
        ]
        said = zip(found, counts, strict=True)
        violations = [Violation(planned.name, f"not so: {r.says}", n) for r, n in said if n]
        if violations:
            sample += _rows(planned, invariants.rows_sql(relation, limit=SAMPLE), relations)
            sample = [row | {"__broken": _words(row["__broken"], found)} for row in sample]
        if most is not None and rows > most:
            violations.append(
                Violation(
                    planned.name, f"it has {count(rows, 'row')}, and {most:,} at most are correct"
                )
            )
    copies = invariants.copies_sql(relation, limit=SAMPLE)
    twice = _rows(planned, copies, relations) if copies is not None else []
    if twice:
        what = f"several rows have one key ({', '.join(plan.key or ())})"
        violations.append(Violation(planned.name, what, twice[0]["__keys"]))
        sample += [{**row, "__broken": "several rows have this key"} for row in twice]
    return violations, sample


def _rows(planned: PlannedTable, sql: str, relations: Relations) -> list[dict[str, Any]]:
    rows = python_rows(arrow_rows(relations.sql(sql)))
    return [{"__table": planned.name, **row} for row in rows]


def _words(numbers: str, found: Sequence[RowInvariant]) -> str:
    return "; ".join(f"not so: {found[int(number)].says}" for number in numbers.split(","))
