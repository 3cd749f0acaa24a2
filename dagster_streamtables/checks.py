"""Public names: asset checks, for definitions that users assemble."""

from __future__ import annotations

from dagster_streamtables.orchestration.changes.change_definitions import (
    build_history_pinned_checks,
    build_slot_lag_checks,
)
from dagster_streamtables.orchestration.checks.table_checks import (
    build_check_schedule,
    build_table_checks,
)
from dagster_streamtables.orchestration.replication.replication_definitions import (
    build_replica_checks,
    build_replication_lag_checks,
)

__all__ = [
    "build_check_schedule",
    "build_history_pinned_checks",
    "build_replica_checks",
    "build_replication_lag_checks",
    "build_slot_lag_checks",
    "build_table_checks",
]
