"""The code location of the demo: a folder of SQL files over the tables that the replay writes."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from dagster_streamtables import StreamTablesResource, build_definitions

HERE = Path(__file__).parent
ROOT = os.environ.get("STREAMTABLES_DEMO_ROOT") or str(HERE.parent / ".demo" / "lake")

streamtables = build_definitions(
    folder=HERE / "tables",
    resource=StreamTablesResource(root=ROOT),
    min_schedule_seconds=10,
)

# One process for a run's refreshes: a process of its own for each would cost more than they do.
defs = dg.Definitions.merge(streamtables, dg.Definitions(executor=dg.in_process_executor))
