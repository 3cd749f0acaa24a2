"""What a table reflects, and lacks, through the stream tables that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster_streamtables.runtime.observe.status import Status


def behind_since(
    name: str, found: Mapping[str, Status], known: dict[str, datetime | None]
) -> datetime | None:
    """The first moment that a table does not reflect, through the stream tables it reads.

    Args:
        name: Of the table.
        found: All tables.
        known: The moments that were found already, and each that is found from now on.
    """
    if name not in known:
        known[name] = None  # what a table that reads itself, through others, adds to itself
        sources = found[name].sources
        own = [each.behind_since for each in sources]
        below = [
            behind_since(each.source, found, known) for each in sources if each.source in found
        ]
        known[name] = min((each for each in (*own, *below) if each is not None), default=None)
    return known[name]


def data_as_of(
    name: str, found: Mapping[str, Status], known: dict[str, datetime | None]
) -> datetime | None:
    """When the newest version was committed that a table reflects, of the tables at the bottom.

    A commit tells it as it was then. Since, a stream table below may have come to reflect more
    without a row of its own being another: who reflects all of its rows, reflects that, too.

    Args:
        name: As for `behind_since`; and `found` and `known`.
        found: All tables.
        known: The times that were found already, and each that is found from now on.
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
