"""`Suspensions`: why tables may not be refreshed, for requests that come many times a second."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dagster_streamtables.declare.analyze import Examined
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.scheduling.situation import stopped

_KNOWN_FOR = 1.0
"""Seconds for which an answer is used again. A refresh asks by itself before it begins."""


class Suspensions:
    """The answers of `stopped`, each read once a second."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[str, tuple[float, str]] = {}

    def of(self, tables: Mapping[str, Examined]) -> dict[str, str]:
        """Why each table may not be refreshed; empty if it may."""
        now = time.monotonic()
        old = [t for n, t in tables.items() if now - self._known.get(n, (-9.0, ""))[0] > _KNOWN_FOR]
        for name, why in stopped(old, self._lake).items():
            self._known[name] = now, why
        return {name: self._known[name][1] for name in tables}

    def forget(self, name: str) -> None:
        """Its next answer is read again."""
        self._known.pop(name, None)
