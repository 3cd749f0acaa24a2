"""`Source`: one table that a query reads, at the start of a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_streamtables.runtime.delta.delta_log import TableLog


@dataclass(frozen=True)
class Source:
    """One source of a query, at the start of a refresh."""

    name: str
    log: TableLog
    columns: Mapping[str, str]
    """The columns that the query uses, spelled as in the log, and their types."""

    @property
    def encodings(self) -> dict[str, str]:
        """How they are read, if the schema has more than the type; see `encoding`."""
        return {name: each for name, each in self.log.encodings.items() if name in self.columns}
