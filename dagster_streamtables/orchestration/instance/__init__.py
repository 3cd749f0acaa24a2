"""Reads the Dagster instance: runs, materializations, check results; ends runs that died."""
