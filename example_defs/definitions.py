"""The code location of the demo: a folder of SQL files over the tables that the replay writes, a
report over one of them that Dagster's own code makes, and alerts of what changed in another."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
from dagster_deltalake import LocalConfig

from dagster_streamtables import (
    CheckSettings,
    StreamTablesIOManager,
    StreamTablesResource,
    build_definitions,
    threads_executor,
)
from example_defs.alerts import late_airlines
from example_defs.report import latest_airlines

HERE = Path(__file__).parent
ROOT = os.environ.get("STREAMTABLES_DEMO_ROOT") or str(HERE.parent / ".demo" / "lake")

reads = StreamTablesIOManager(root_uri=ROOT, storage_options=LocalConfig())

defs = dg.Definitions.merge(
    build_definitions(
        folder=HERE / "tables",
        change_assets=[late_airlines],
        resource=StreamTablesResource(root=ROOT),
        # Not only at night: the demo shows that tables equal their queries.
        checks=CheckSettings(equality="*/5 * * * *"),
        min_schedule_seconds=10,
        group_name="stream_tables",
        source_group_name="sources",
    ),
    dg.Definitions(
        assets=[latest_airlines],
        resources={"io_manager": reads},
        # What is materialized by hand starts no process for each table either.
        executor=threads_executor,
    ),
)
