"""What checks and sensors ask of a resource: the tables, with Spark or without."""

from __future__ import annotations

from typing import Protocol

from dagster_streamtables.runtime.lake import Lake

RESOURCE_KEY = "streamtables"
"""Under which a code location with one root has its resource."""


class LakeProvider(Protocol):
    """`StreamTablesResource`, as those see it that it is built upon."""

    def lake(self) -> Lake:
        """The tables, with the Spark that refreshes them."""
        ...

    def logs(self) -> Lake:
        """The tables without any Spark: for what their Delta logs say."""
        ...
