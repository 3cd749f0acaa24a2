"""The code location of the demo: a folder of SQL files over the tables that the replay writes."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from dagster_streamtables import StreamTablesResource, build_definitions

HERE = Path(__file__).parent
ROOT = os.environ.get("STREAMTABLES_DEMO_ROOT") or str(HERE.parent / ".demo" / "lake")

defs = dg.Definitions.merge(
    build_definitions(
        folder=HERE / "tables",
        resource=StreamTablesResource(root=ROOT),
        min_schedule_seconds=10,
        group_name="stream_tables",
        source_group_name="sources",
    ),
    # What is materialized by hand starts no process for each table either.
    dg.Definitions(executor=dg.in_process_executor),
)
