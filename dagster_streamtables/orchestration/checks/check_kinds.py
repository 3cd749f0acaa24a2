"""The checks that each stream table has. A new one is added here."""

from __future__ import annotations

from dagster_streamtables.orchestration.checks.equality_check import EQUALITY
from dagster_streamtables.orchestration.checks.retention_check import RETENTION
from dagster_streamtables.orchestration.checks.state_checks import COLUMNS, FRESHNESS, STATE

KINDS = (EQUALITY, STATE, COLUMNS, FRESHNESS, RETENTION)
