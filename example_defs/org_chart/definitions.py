"""The code location of the org chart: two tables of a PostgreSQL server, and four levels above.

The server is the demo's. The code location loads without it, and a refresh says that it cannot be
reached.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from dagster_streamtables import StreamTablesResource, build_definitions, threads_executor
from example_defs.org_chart.replication import org_chart

HERE = Path(__file__).parent
DEMO = HERE.parent.parent / ".demo"
ROOT = os.environ.get("STREAMTABLES_DEMO_ROOT") or str(DEMO / "lake")
ADDRESS = (
    os.environ.get("STREAMTABLES_DEMO_POSTGRES")
    or f"postgresql://postgres@/org_chart?host={DEMO / 'postgres'}"
)

defs = dg.Definitions.merge(
    build_definitions(
        folder=HERE / "tables",
        replications=[org_chart(ADDRESS)],
        # Both code locations keep their tables below one root.
        name="org_chart",
        resource=StreamTablesResource(root=ROOT),
        min_schedule_seconds=10,
        group_name="org_chart",
        source_group_name="org_chart",
    ),
    # What is materialized by hand starts no process for each table.
    dg.Definitions(executor=threads_executor),
)
