"""`Source`: one table that a query reads, as its log has it when a refresh begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_streamtables.runtime.delta.delta_log import TableLog


@dataclass(frozen=True)
class Source:
    """One source of a query at the moment of a refresh."""

    name: str
    log: TableLog
    columns: Mapping[str, str]
    """The columns that the query uses, as the log spells them, and their types."""

    @property
    def encodings(self) -> dict[str, str]:
        """How they are read, where there is more to it than the type; see `encoding`."""
        return {name: told for name, told in self.log.encodings.items() if name in self.columns}
