"""Refreshes of a throwaway lake, after which the first ones of real tables are not the first.

The first join on a fresh server takes several seconds of processor time, nearly all of it to load
and compile Java's code; after a rehearsal it takes a third.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator

from filelock import Timeout

from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.spark.environment import lock, temporary

_SESSION = str(uuid.uuid5(uuid.NAMESPACE_URL, "rehearsal"))
_ROWS, _WINDOWS = 1000, 2
_TABLES = {
    "joined": "SELECT o.id, c.region, o.amount FROM orders AS o JOIN customers AS c "
    "ON o.customer = c.id",
    "summed": "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer",
    "regions": "SELECT region, sum(amount) AS total, count(*) AS n FROM joined GROUP BY region",
}


def rehearse(goes_on: Callable[[], bool] = lambda: True) -> bool:
    """Refresh tables of the common shapes on the local server, which is started if necessary.

    Args:
        goes_on: Asked before each refresh, the longest of which takes some seconds.

    Returns:
        Whether all of it was done; not if another process rehearses.

    Raises:
        EnvironmentProblem: The server cannot be started.
    """
    from dagster_streamtables.runtime.spark.session import open_session

    try:
        with lock("rehearsal.lock", blocking=False):
            session = open_session(session_id=_SESSION)
            try:
                with tempfile.TemporaryDirectory(dir=temporary()) as folder:
                    steps = _steps(Lake(folder, spark=session))
                    return all(goes_on() for _ in steps)
            finally:
                session.stop()
    except Timeout:
        return False


def _steps(lake: Lake) -> Iterator[None]:
    """Pauses before each refresh."""
    from deltalake import write_deltalake

    customers = {"id": [*range(10)], "region": [f"region {each % 3}" for each in range(10)]}
    write_deltalake(lake.location("customers"), pa.table(customers))
    tables = [
        StreamTable(name, query, differential_max_change_ratio=0) for name, query in _TABLES.items()
    ]
    for window in range(_WINDOWS):
        ids = range(_ROWS + window)[-1:] if window else range(_ROWS)
        orders = {
            "id": [*ids],
            "customer": [each % 10 for each in ids],
            "amount": [each % 100 for each in ids],
        }
        write_deltalake(lake.location("orders"), pa.table(orders), mode="append")
        for table in tables:
            yield
            lake.refresh(table)
