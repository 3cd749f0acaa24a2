"""Spark made ready for the first refreshes of a worker."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.environment import home, variable
from dagster_streamtables.runtime.spark.local_server import ensure_server, server_status

if TYPE_CHECKING:
    from dagster_streamtables.worker.workload import Workload

_NEW = timedelta(minutes=2)
"""For so long, the local server has just been started."""


def start_early(place: str, *, local: bool = False) -> None:
    """Start the local server in a thread while the definitions of a place are imported, if they
    used it the last time, or are known to use it. The place is named as for `remember`."""
    with suppress(Exception):  # the first refresh reports it
        if local or _memo(place).is_file():
            threading.Thread(target=_start, name="start Spark", daemon=True).start()


def remember(place: str, driven: list[Workload]) -> None:
    """Note whether the definitions of a place use the local server."""
    with suppress(Exception):  # it would only be quicker
        memo = _memo(place)
        if any(_uses_local_server(each) for each in driven):
            memo.parent.mkdir(mode=0o700, exist_ok=True)
            memo.touch(mode=0o600)
        else:
            memo.unlink(missing_ok=True)


def warm(driven: Workload, is_idle: Callable[[], bool]) -> None:
    """Open a session during the first decisions; while nothing must be refreshed, rehearse."""
    from dagster_streamtables.runtime.rehearsal import rehearse

    with suppress(Exception):  # the first refresh reports it
        for name, examined in [*driven.nodes.tables.items()][:1]:
            driven.lake().access.session(name, examined.table.session_timezone)
        status = server_status() if _uses_local_server(driven) else None
        if status is not None and datetime.now(UTC) - status.started < _NEW:
            rehearse(is_idle)


def _start() -> None:
    with suppress(Exception):  # the first refresh reports it
        ensure_server()


def _uses_local_server(driven: Workload) -> bool:
    return driven.lake().access.spark is None and not variable("STREAMTABLES_SPARK")


def _memo(place: str) -> Path:
    return home() / "workers" / hashlib.sha256(f"{Path.cwd()}\n{place}".encode()).hexdigest()[:16]
