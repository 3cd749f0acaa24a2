"""A folder of `.sql` files and the replications of a lake: what a worker drives without Dagster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from dagster_streamtables.declare.analyze import Examined, examine
from dagster_streamtables.declare.load import read_folder
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.log_heads import Heads
from dagster_streamtables.scheduling.nodes import Nodes
from dagster_streamtables.worker.driven import Driven
from dagster_streamtables.worker.memory import Memory
from dagster_streamtables.worker.registered import registered


def of_folder(folder: str, lake: Lake) -> Driven:
    """The tables that a folder declares, and the replications that the lake knows.

    Raises:
        StreamTablesError: The folder or the root cannot be read.
    """
    examined = tuple(examine(read_folder(folder), lake, min_schedule_seconds=0))
    for each in examined:
        if each.error is not None:
            logger.warning("%s", each.error)
    return Driven(
        Nodes(examined, registered(lake, examined)),
        lambda: lake,
        lake,
        partial(past_of_logs, lake, examined),
        registered=True,
    )


def past_of_logs(lake: Lake, examined: Sequence[Examined]) -> Mapping[str, Memory]:
    """What the logs of the tables tell of their last refreshes that committed anything.

    Whether a definition has changed since then, the next refresh finds out.
    """
    heads = Heads(lake.location, lake.storage_options)
    return {each.name: _memory(heads, each.name) for each in examined if each.error is None}


def _memory(heads: Heads, name: str) -> Memory:
    try:
        state = heads.state(name)
    except Exception:  # its refresh reports the error
        state = None
    if state is None:
        return Memory()
    done = datetime.fromtimestamp(state.account.until, UTC)
    began = done - timedelta(seconds=state.account.seconds)
    return Memory(last=done, as_of=began)
