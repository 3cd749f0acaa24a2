"""The start of a refresh: the versions that it reads, and its stored table, as a `Job`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from dagster_streamtables.compiler import Plan, Text, View
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.runtime.delta.data_rows import pads
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.errors.tables import MissingSource
from dagster_streamtables.runtime.model.definition import stored_plan, used_columns, visible_types
from dagster_streamtables.runtime.model.fingerprint import fingerprint_of, with_present_names
from dagster_streamtables.runtime.model.state import TableInStorage
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import Source, TableCatalog, with_exact_names
from dagster_streamtables.runtime.refresh.align import TableLookup, align
from dagster_streamtables.runtime.refresh.context import Job

Until = Mapping[str, datetime]


def prepare(
    table: StreamTable, catalog: TableCatalog, *, full: bool = False, until: Until | None
) -> Job:
    """The job of a refresh of a table.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names what does not exist.
        MissingSource: A source does not exist, or is not a Delta table.
    """
    try:
        return _prepare_job(table, catalog, full=full, until=until)
    except MissingSource:  # only now are folders listed, for one that is spelled in another case
        spelled = with_exact_names(table, catalog.exact_name)
        missing = [name for name in spelled.sources if catalog.newest(name) is None]
        if missing:
            raise catalog.missing(missing[0], spelled) from None
        return _prepare_job(spelled, catalog, full=full, until=until)


def _prepare_job(
    table: StreamTable, catalog: TableCatalog, *, full: bool, until: Until | None
) -> Job:
    location = catalog.names.location(table.name)
    stored = catalog.table_at(location)
    consumed = _last_frontier(stored, table.sources)
    newest = _newest(table.sources, catalog, until or {}, consumed or {})
    lookup = TableLookup(catalog.newest, catalog.at, catalog.state, catalog.name_by_id)
    agreed = align(newest, consumed, lookup)
    logs = agreed.logs or newest
    columns = {name: visible_types(log.columns) for name, log in logs.items()}
    text, plan, refusal = plan_query(table, columns)
    fingerprint = fingerprint_of(table, plan)
    known = stored
    if stored is not None:
        stored = with_present_names(table, text, plan, stored)
    state = stored.state if stored is not None else None
    used = {name: used_columns(plan, name, log) for name, log in logs.items()}
    job = Job(
        table=table,
        text=text,
        fingerprint=fingerprint,
        plan=plan,
        refusal=refusal,
        location=location,
        stored=stored,
        sources={name: Source(name, log, used[name]) for name, log in logs.items()},
        full=full,
        waiting=agreed.waiting,
        blocked=bool(newest) and not agreed.logs,
        storage_options=catalog.logs.storage_options,
        intermediates=state.intermediates if state is not None else {},
        renewed=stored is not known,
        later=_later(newest, catalog, until or {}),
    )
    refused = state.refused.get(fingerprint) if state is not None else None
    if refused is not None and table.mode is Mode.AUTO:
        return job.in_full(refused)
    kept_whole = state is not None and state.whole == fingerprint
    if plan is None:
        return job
    # For Spark, CHAR(n) is not just text: `c = 'ab'` pads the literal. Stored, it is text.
    padded = plan.intermediates and any(pads(log, used[name]) for name, log in logs.items())
    return job.without_intermediates(plan) if kept_whole or padded else job


def plan_query(
    table: StreamTable, columns: Mapping[str, Mapping[str, str]]
) -> tuple[Text, Plan | None, str | None]:
    """The query in Spark SQL, its plan, and in mode AUTO why it has none.

    Args:
        table: The declaration.
        columns: The visible columns of its sources.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names what does not exist.
    """
    text = table.text(columns)
    if table.mode is Mode.FULL:
        return text, None, None
    try:
        return text, stored_plan(table, text, columns).with_intermediates, None
    except UnsupportedQuery as error:
        if table.mode is not Mode.AUTO:
            raise
        return text, None, error.what


def with_views(table: StreamTable, views: Iterable[View]) -> StreamTable:
    """The table with more views; its own take precedence."""
    own = {view.name for view in table.views}
    more = [view for view in views if view.name not in own]
    return replace(table, views=(*table.views, *more)) if more else table


def _newest(
    sources: Iterable[str], catalog: TableCatalog, until: Until, consumed: Mapping[str, int]
) -> dict[str, TableLog]:
    read: dict[str, TableLog] = {}  # two names of one table are read at one version
    found: dict[str, TableLog] = {}
    for name in sources:
        place = catalog.names.location(name)
        if place not in read:
            read[place] = catalog.source(name, until.get(name), consumed.get(name, 0))
        found[name] = read[place]
    return found


def _later(read: Mapping[str, TableLog], catalog: TableCatalog, until: Until) -> str:
    """The time for which a source with newer versions was asked; empty without one."""
    for name, time in until.items():
        log = catalog.newest(name) if name in read else None
        if log is not None and log.version > read[name].version:
            return f"{time:%H:%M:%S}"
    return ""


def _last_frontier(
    stored: TableInStorage | None, sources: Iterable[str]
) -> Mapping[str, int] | None:
    """The versions of the sources that the last refresh read."""
    state = stored.state if stored is not None else None
    return state.frontier if state is not None and set(state.frontier) == set(sources) else None
