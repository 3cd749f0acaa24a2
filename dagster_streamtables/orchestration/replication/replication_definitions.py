"""Replications as a part of a code location: their catalog, checks and schedules.

The tables of a replication, and their columns, are read from its stored state: loading connects to
no publisher.

Two checks: is each table equal to its origin, and how far is it behind? Neither blocks a refresh.
The first reads the whole origin, so it has its own schedule.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import count, duration
from dagster_streamtables.declare.nodes import ScheduledReplication, declared_tables
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    is_only_for_runs,
    read_from_first_load,
    store_for_later_loads,
)
from dagster_streamtables.orchestration.catalog.node_assets import (
    DeclaredReplications,
    ReplicationCatalog,
    ReplicationEntry,
    Tables,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.checks.check_kind import (
    MAX_LAG,
    FactoryCheck,
    check_op,
    check_result,
    error_result,
)
from dagster_streamtables.orchestration.replication import replication_metadata as values
from dagster_streamtables.orchestration.replication.replication_metadata import LAG, ORIGIN
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_errors import MissingReplication
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.replication.lifecycle.replication_report import TableCheck, TableState

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


_KEY = "streamtables/replications/"


def replication_catalog(
    replications: DeclaredReplications,
    resource: StreamTablesResource,
    name: str,
    **about: Any,
) -> ReplicationCatalog:
    """The replications, with the tables in their stored states. Asks no publisher.

    Args:
        replications: The declarations, or a catalog, which is used unchanged.
        resource: Where the states and the targets are.
        name: The name of the resource.
        about: Further arguments of `build_replication_catalog`.
    """
    if isinstance(replications, ReplicationCatalog):
        return replications
    given = list(replications)
    if not given:
        return ReplicationCatalog()
    declared = [e.replication if isinstance(e, ScheduledReplication) else e for e in given]
    lake = resource.logs()
    stored = read_stored_tables(declared, lake, name)
    columns = read_columns(declared, stored, lake)
    return build_replication_catalog(given, stored=stored, columns=columns, **about)


def read_stored_tables(
    replications: Iterable[Replication], lake: "Lake", name: str
) -> dict[str, Tables]:
    """By replication, the tables in its stored state; `name` is that of the resource, which differs
    between calls of `build_definitions`.

    A run has the assets of the first load of the code location, so its process uses the tables that
    were known then: tables that became known since would be other assets.
    """
    known = read_from_first_load(_KEY + name)
    if known is not None:
        return json.loads(known)
    found: dict[str, Tables] = {each.name: _read_tables(each, lake) for each in replications}
    store_for_later_loads(_KEY + name, json.dumps(found))
    return found


def read_columns(
    replications: Iterable[Replication], stored: Mapping[str, Tables], lake: "Lake"
) -> dict[str, Mapping[str, str]]:
    """By target, the columns of the targets that exist."""
    if is_only_for_runs():
        return {}
    found: dict[str, Mapping[str, str]] = {}
    for each in replications:
        for target in (declared_tables(each) | dict(stored[each.name])).values():
            if columns := _columns(target, lake):
                found[target] = columns
    return found


def _read_tables(replication: Replication, lake: "Lake") -> dict[str, str]:
    try:
        status = Replications(lake).read(replication.name)
    except MissingReplication:
        return {}
    except Exception as error:  # the code location must load; a refresh reports the error
        logger.warning("the tables of replication %s are not known: %s", replication.name, error)
        return {}
    return {each.name: replication.target(each.name) for each in status.tables}


def _columns(target: str, lake: "Lake") -> Mapping[str, str] | None:
    try:
        return lake.columns(target)
    except Exception as error:  # as above
        logger.warning("the columns of %s are not known: %s", target, error)
        return None


ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
NEVER = "The replication was never refreshed."
_WAIT = 60.0
"""Seconds for a refresh of the replication that is under way."""

Evaluate = Callable[
    ["Lake", ReplicationEntry, Mapping[dg.AssetKey, str]], Iterator[dg.AssetCheckResult]
]
"""A replication and the published names of the selected tables → their results."""


def build_replica_checks(
    *,
    replications: DeclaredReplications,
    name: str = "streamtables_origin",
    severity: dg.AssetCheckSeverity = ERROR,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """One op with a check for each replicated table: it equals its origin at one moment.

    The check reads the origin in a snapshot, brings the table to the position of that snapshot,
    and compares both as multisets, in both directions. It fails with the rows that differ, and
    also if the publisher cannot be read.

    Args:
        replications: The declarations.
        name: The name of the op.
        severity: The severity of a difference.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_replication_catalog`.
    """

    def evaluate(
        lake: "Lake", entry: ReplicationEntry, selected: Mapping[dg.AssetKey, str]
    ) -> Iterator[dg.AssetCheckResult]:
        replications = Replications(lake)
        states = {each.name: each.state for each in replications.read(entry.name).tables}
        there = [n for n in selected.values() if states.get(n) is not TableState.REMOVED]
        found = replications.check(entry.name, *there, wait=_WAIT).tables if there else {}
        for key, table in selected.items():
            if table in there:
                yield _comparison_result(key, found[entry.tables[table]], severity)
            else:
                yield check_result(
                    key, ORIGIN, WARN, f"{table} is not published any more.", passed=False
                )

    description = "The table equals what its publisher publishes, at one moment."
    return _checks(
        name, ORIGIN, description, evaluate, severity, resource_key, replications, **catalog
    )


def build_replication_lag_checks(
    *,
    replications: DeclaredReplications,
    name: str = "streamtables_replication",
    max_lag: timedelta = MAX_LAG,
    severity: dg.AssetCheckSeverity = WARN,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """One op with a check for each replicated table: its slot is there, the replication is enabled,
    and what its publisher changed up to `max_lag` ago is applied.

    A slot that is lost, a replication that is disabled and a table that is in trouble are errors,
    whatever the severity.

    Args:
        replications: The declarations.
        name: The name of the op.
        max_lag: The age of a change that is not applied from which on the check fails.
        severity: The severity of a lag.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_replication_catalog`.
    """

    def evaluate(
        lake: "Lake", entry: ReplicationEntry, selected: Mapping[dg.AssetKey, str]
    ) -> Iterator[dg.AssetCheckResult]:
        replications = Replications(lake)
        status = replications.read(entry.name)
        if not status.enabled:
            said = f"The replication is disabled: {status.error or 'somebody disabled it'}."
            yield from (check_result(key, LAG, ERROR, said, passed=False) for key in selected)
            return
        stopped = {each.name: each for each in status.tables if not each.is_current}
        for key, table in selected.items():
            if table in stopped:
                each = stopped[table]
                said = f"The table is {each.state}: {each.error}\n\nfix: {each.fix}"
                yield check_result(key, LAG, ERROR, said, passed=False)
        selected = {key: table for key, table in selected.items() if table not in stopped}
        if not selected:
            return
        lag = replications.lag(entry.name, stopped=False)
        late = lag.seconds > max_lag.total_seconds()
        said = (
            f"Changes have waited for {duration(lag.seconds)}."
            if late
            else "The replication is no further behind than it may be."
        )
        for key in selected:
            yield check_result(
                key, LAG, severity, said, passed=not late, metadata=values.of_lag(lag)
            )

    description = f"The slot is there, and no change has waited for longer than {max_lag}."
    return _checks(name, LAG, description, evaluate, ERROR, resource_key, replications, **catalog)


def _checks(
    name: str,
    check_name: str,
    description: str,
    evaluate: Evaluate,
    severity: dg.AssetCheckSeverity,
    resource_key: str,
    replications: DeclaredReplications,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    entries = build_replication_catalog(replications, **catalog).entries
    tables = {e.name: {e.specs[t].key: n for n, t in e.tables.items()} for e in entries}

    def results(lake: "Lake", selected: Sequence[dg.AssetKey]) -> Iterator[dg.AssetCheckResult]:
        for entry in entries:
            chosen = {key: n for key, n in tables[entry.name].items() if key in selected}
            try:
                found = [*evaluate(lake, entry, chosen)] if chosen else []
            except MissingReplication:
                found = [
                    check_result(key, check_name, severity, NEVER, passed=False) for key in chosen
                ]
            except StreamTablesError as error:
                found = [error_result(key, check_name, severity, error) for key in chosen]
            yield from found

    keys = [key for each in tables.values() for key in each]
    return check_op(name, check_name, description, keys, results, resource_key)


def _comparison_result(
    key: dg.AssetKey, found: TableCheck, severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    if found.error:
        return check_result(key, ORIGIN, severity, f"Not compared: {found.error}", passed=False)
    metadata: dict[str, Any] = {
        keys.MISSING: found.missing,
        keys.UNEXPECTED: found.unexpected,
        keys.VERSION: found.version,
        values.POSITION: found.position,
        keys.ROW_COUNT: found.rows,
    }
    if found.sample:
        metadata[keys.SAMPLE] = keys.rows_table(found.sample, first="__difference")
    if found.equal:
        said = f"The table equals its origin: {count(found.rows, 'row')}."
    else:
        said = f"Rows missing: {found.missing:,}, unexpected: {found.unexpected:,}."
        said += f" They need not be equal: {found.note}." if found.note else ""
    passed = found.equal or bool(found.note)
    return check_result(key, ORIGIN, severity, said, passed=passed, metadata=metadata)


REPLICATION_KINDS = (
    FactoryCheck("origin", ORIGIN, build_replica_checks),
    FactoryCheck("replication", LAG, build_replication_lag_checks, ("max_lag",)),
)
"""The kinds of checks that each replicated table has."""
