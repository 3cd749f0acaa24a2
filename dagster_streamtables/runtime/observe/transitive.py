"""What a table reflects, and does not reflect, through the stream tables that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from dagster_streamtables.runtime.observe.health import SourceHealth


class Reflects(Protocol):
    """What a status says of one table by itself."""

    @property
    def sources(self) -> Sequence[SourceHealth]: ...

    @property
    def data_timestamp(self) -> datetime | None: ...


def behind_since(
    name: str, found: Mapping[str, Reflects], known: dict[str, datetime | None]
) -> datetime | None:
    """The first commit time that a table does not reflect, directly or through stream tables.

    Args:
        name: The table.
        found: All tables.
        known: A cache of the results; extended here.
    """
    if name not in known:
        known[name] = None  # ends a cycle of tables that read each other
        sources = found[name].sources
        own = [each.behind_since for each in sources]
        below = [
            behind_since(each.source, found, known) for each in sources if each.source in found
        ]
        known[name] = min((each for each in (*own, *below) if each is not None), default=None)
    return known[name]


def data_as_of(
    name: str, found: Mapping[str, Reflects], known: dict[str, datetime | None]
) -> datetime | None:
    """The commit time of the newest version that a table reflects, of the tables at the bottom.

    A table's commit stores it as of that commit. Since then, a stream table that it reads may
    reflect more without a change of its rows: whoever reflects all its rows reflects that, too.

    Args:
        name: The table.
        found: All tables.
        known: A cache of the results; extended here.
    """
    if name not in known:
        known[name] = found[name].data_timestamp
        below = [
            data_as_of(each.source, found, known)
            for each in found[name].sources
            if each.source in found and not each.gone and each.behind_since is None
        ]
        known[name] = max((t for t in (known[name], *below) if t is not None), default=None)
    return known[name]
