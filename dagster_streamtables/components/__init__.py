"""Stream tables as a Dagster component: the arguments of `build_definitions`, in YAML."""

from __future__ import annotations

from dagster_streamtables.components.component import StreamTablesComponent, StreamTablesScaffolder

__all__ = ["StreamTablesComponent", "StreamTablesScaffolder"]
