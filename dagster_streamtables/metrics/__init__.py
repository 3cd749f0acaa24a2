"""Metrics of stream tables for Prometheus, and a dashboard for Grafana (`dashboard.json`)."""

from __future__ import annotations

from pathlib import Path

from dagster_streamtables.metrics.collector import StreamTablesCollector

DASHBOARD = Path(__file__).parent / "dashboard.json"
"""Import it into Grafana and choose the Prometheus that scrapes the metrics."""

__all__ = ["DASHBOARD", "StreamTablesCollector"]
