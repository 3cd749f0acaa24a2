"""Alerts of replications: what their stored states say once a refresh failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind
from dagster_streamtables.orchestration.catalog.replicated import ReplicationCatalog
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.status import ReplicationStatus

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

SUSPENSION = "suspension"
ERRORS = "errors in a row"
_MANY = 3
"""Errors in a row from which on they are told: what passes by itself has passed by then."""


@dataclass(frozen=True)
class WatchedReplications:
    """The replications whose refreshes are watched."""

    catalog: ReplicationCatalog
    lake: Lake
    """Where their states are; needs no Spark."""

    @property
    def nodes(self) -> dict[dg.AssetKey, str]:
        """What a failed refresh is told of: the replication, and not each of its tables."""
        return self.catalog.nodes

    @property
    def names(self) -> dict[dg.AssetKey, str]:
        """The tables that checks and freshness are told of."""
        return self.nodes | {key: target for target, key in self.catalog.keys.items()}

    def after(self, alerts: Iterable[Alert]) -> Iterator[Alert]:
        """What else is to be told of the replications that failed."""
        failed = {alert.table: alert for alert in alerts if alert.about}
        for entry in self.catalog.entries:
            failure = failed.get(entry.node.name)
            status = self._status(entry.name) if failure is not None else None
            if failure is not None and status is not None:
                yield from _of_status(failure, status)

    def _status(self, name: str) -> ReplicationStatus | None:
        try:
            return Replications(self.lake).read(name)
        except Exception as error:  # the failure itself is told
            logger.warning("the state of replication %s cannot be read: %s", name, error)
            return None


def _of_status(failure: Alert, status: ReplicationStatus) -> Iterator[Alert]:
    if not status.enabled:
        said = (
            f"an error disabled it: {status.error}\n\nfix: correct the cause, then: "
            f"streamtables replications enable {status.name}"
        )
        yield Alert(
            failure.table, AlertKind.REPLICATION_DISABLED, said, failure.at, failure.run_id,
            SUSPENSION,
        )  # fmt: skip
    if status.errors >= _MANY:
        said = f"{status.errors} refreshes in a row failed: {status.error}"
        yield Alert(
            failure.table, AlertKind.ERRORS_IN_A_ROW, said, failure.at, failure.run_id, ERRORS
        )
