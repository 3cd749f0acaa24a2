"""Alerts: reads the events of the Dagster instance and notifies people."""
