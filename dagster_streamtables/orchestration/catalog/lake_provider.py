"""`LakeProvider`: what checks and sensors need from the resource, without its dependencies."""

from __future__ import annotations

from typing import Protocol

from dagster_streamtables.runtime.lake import Lake

RESOURCE_KEY = "streamtables"
"""The resource key in a code location with one root."""


class LakeProvider(Protocol):
    """The part of `StreamTablesResource` that modules below it use."""

    def lake(self) -> Lake:
        """The tables, with Spark."""
        ...

    def logs(self) -> Lake:
        """The tables without Spark, for reading their Delta logs."""
        ...
