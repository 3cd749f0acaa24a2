"""Reads the Dagster instance: runs, materializations, check results."""
