"""Turn on a source's Change Data Feed on request (`CdcMode.ENABLE`).

The source is somebody else's table, so this happens only on request. A refresh that had to compare
files turns the feed on for the future, by one commit of a property without rows. The window with
that commit is read from the files of both ends, since the feed does not cover it; later windows are
read from the feed, as long as it covers them.
"""

from __future__ import annotations

from dataclasses import replace

from deltalake import DeltaTable

from dagster_streamtables.log import logger
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.delta.source_change import Capture
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.runtime.model.state import state_of
from dagster_streamtables.runtime.model.stream_table import CdcMode
from dagster_streamtables.runtime.refresh.context import Job
from dagster_streamtables.runtime.spark.commits import commits_safely

PROPERTY = "delta.enableChangeDataFeed"


def with_feeds(job: Job, done: Refresh, inputs: Inputs) -> Refresh:
    """Turn on the feeds that a refresh missed; the report says so.

    The refresh has committed, so an error, such as a missing permission, is reported and does not
    fail it.
    """
    reasons = [done.reason]
    for name in _sources_without_feed(job, done) if job.table.cdc_mode is CdcMode.ENABLE else ():
        place = job.sources[name].log.location
        try:
            table = DeltaTable(place, storage_options=dict(job.storage_options or {}))
            if not _is_on(table):
                _turn_on(table, place, inputs)
                reasons.append(f'the change feed of "{name}" is now on')
        except Exception as error:
            said = f'the change feed of "{name}" could not be turned on'
            logger.warning("%s: %s: %s", job.table.name, said, error)
            reasons.append(f"{said}: {first_line(str(error))}")
    return replace(done, reason="; ".join(reasons))


def _sources_without_feed(job: Job, done: Refresh) -> list[str]:
    """Sources that write no feed and whose files were compared, without stream tables."""
    return [
        name
        for name, source in job.sources.items()
        if done.windows[name].capture is Capture.SNAPSHOTS
        and not source.log.has_feed
        and state_of(name, source.log) is None
    ]


def _is_on(table: DeltaTable) -> bool:
    """Whether another stream table has turned it on already."""
    return (table.metadata().configuration.get(PROPERTY) or "").lower() == "true"


def _turn_on(table: DeltaTable, place: str, inputs: Inputs) -> None:
    if commits_safely(inputs.spark, place):
        inputs.spark.sql(
            f"ALTER TABLE delta.{spark_name(place)} SET TBLPROPERTIES ({PROPERTY} = true)"
        )
    else:
        table.alter.set_table_properties({PROPERTY: "true"})
