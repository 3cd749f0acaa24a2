"""Several refreshes of one replication, told as one; and the events that tell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import dagster as dg

from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION, tags_without_run
from dagster_streamtables.orchestration.catalog.replicated import ReplicationEntry
from dagster_streamtables.orchestration.replication.recorded import Materialized, Recorded
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh, TableRefresh
from dagster_streamtables.runtime.lake import Lake

_VERSIONS = 200


@dataclass(frozen=True)
class ReplicationSummary:
    """What happened to a replication since the last report of it."""

    refresh: ReplicationRefresh
    """The last refresh, with what those before it did to each table added."""
    began: datetime
    """When the last refresh began."""
    count: int = 1
    """Number of refreshes."""
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """By target, the newest Delta versions that they made."""

    @classmethod
    def of(cls, refresh: ReplicationRefresh, began: datetime) -> ReplicationSummary:
        """One refresh."""
        made = {t: (d.version,) for t, d in refresh.tables.items() if d.version is not None}
        return cls(refresh, began, versions=made)

    def then(self, later: ReplicationSummary) -> ReplicationSummary:
        """This, and what happened after it."""
        one, two = self.refresh.tables, later.refresh.tables
        tables = {name: _then(one.get(name), done) for name, done in two.items()}
        refresh = replace(later.refresh, tables=tables)
        versions = {
            name: (*self.versions.get(name, ()), *later.versions.get(name, ()))[-_VERSIONS:]
            for name in {*self.versions, *later.versions}
        }
        return ReplicationSummary(refresh, later.began, self.count + later.count, versions)


def tell(
    instance: dg.DagsterInstance, lake: Lake, entry: ReplicationEntry, summary: ReplicationSummary
) -> None:
    """Record what happened to a replication.

    Raises:
        Exception: The instance cannot be reached; what was not recorded is to be told again.
    """
    recorded = Recorded(instance, lake, entry, summary.refresh, summary.began, logger.warning)
    made = [*recorded.materialized()]
    for each in made:
        metadata = {**each.metadata, keys.REFRESHES: summary.count}
        event = dg.AssetMaterialization(each.key, metadata=metadata, tags=_tags(instance, each))
        instance.report_runless_asset_event(event)
    for each in made if entry.tables else ():
        try:
            for result in recorded.standing_checks(each.key, changed=each.moved):
                instance.report_runless_asset_event(result)
        except Exception as error:  # to tell all again would repeat the materializations
            shown = each.key.to_user_string()
            logger.warning("the checks of %s are not reported: %s", shown, error)
    for result in recorded.troubles() if entry.tables else ():
        instance.report_runless_asset_event(result)
    recorded.tell_new()


def _tags(instance: dg.DagsterInstance, made: Materialized) -> Mapping[str, str]:
    version = {} if made.version is None else {DATA_VERSION: made.version}
    if made.spec is None or made.version is None:
        return version
    return tags_without_run(instance, made.spec, made.version, {})


def _then(one: TableRefresh | None, two: TableRefresh) -> TableRefresh:
    if one is None:
        return two
    copies = [each for each in (one.copied, two.copied) if each is not None]
    return TableRefresh(
        two.name,
        sum(copies) if copies else None,
        one.inserted + two.inserted,
        one.updated + two.updated,
        one.deleted + two.deleted,
        dict(Counter(one.conflicts) + Counter(two.conflicts)),
        one.version if two.version is None else two.version,
        one.position if two.position is None else two.position,
    )
