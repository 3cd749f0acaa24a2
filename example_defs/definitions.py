"""The code location of the demo: a folder of SQL files over the tables that the replay writes."""

from __future__ import annotations

import os
from pathlib import Path

from dagster_streamtables import StreamTablesResource, build_definitions

HERE = Path(__file__).parent
ROOT = os.environ.get("STREAMTABLES_DEMO_ROOT") or str(HERE.parent / ".demo" / "lake")

defs = build_definitions(
    folder=HERE / "tables",
    resource=StreamTablesResource(root=ROOT),
    min_schedule_seconds=10,
    group_name="stream_tables",
    source_group_name="sources",
)
