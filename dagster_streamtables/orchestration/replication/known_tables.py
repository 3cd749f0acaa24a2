"""Which tables a replication has, with their columns: as stored, never asked of a publisher."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.declare.replications import declared_tables
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog.load_kind import (
    is_only_for_runs,
    keep,
    known_before,
)
from dagster_streamtables.orchestration.catalog.replicated import Tables
from dagster_streamtables.replication.lifecycle.errors import MissingReplication
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replications import Replications

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_KEY = "streamtables/replications/"


def stored_tables(replications: Iterable[Replication], lake: Lake, name: str) -> dict[str, Tables]:
    """By replication, the tables that its stored state has.

    A run has the assets that were there when the code location was loaded, so its process takes
    what was known then: the tables that became known since would be other assets.

    Args:
        replications: The declarations.
        lake: Where the state is.
        name: Of the resource, which the definitions of one call have.
    """
    known = known_before(_KEY + name)
    if known is not None:
        return json.loads(known)
    found: dict[str, Tables] = {each.name: _stored(each, lake) for each in replications}
    keep(_KEY + name, json.dumps(found))
    return found


def known_columns(
    replications: Iterable[Replication], stored: Mapping[str, Tables], lake: Lake
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


def _stored(replication: Replication, lake: Lake) -> dict[str, str]:
    try:
        status = Replications(lake).read(replication.name)
    except MissingReplication:
        return {}
    except Exception as error:  # the code location must load; a refresh reports the error
        logger.warning("the tables of replication %s are not known: %s", replication.name, error)
        return {}
    return {each.name: replication.target(each.name) for each in status.tables}


def _columns(target: str, lake: Lake) -> Mapping[str, str] | None:
    try:
        return lake.columns(target)
    except Exception as error:  # as above
        logger.warning("the columns of %s are not known: %s", target, error)
        return None
