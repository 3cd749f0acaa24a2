"""Public names: the values in what `Lake` returns."""

from __future__ import annotations

from dagster_streamtables.runtime.checks.comparison import Comparison
from dagster_streamtables.runtime.delta.source_change import Capture
from dagster_streamtables.runtime.model.refresh_report import FullReason, Window

__all__ = ["Capture", "Comparison", "FullReason", "Window"]
