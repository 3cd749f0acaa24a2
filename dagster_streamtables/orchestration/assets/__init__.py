"""What Dagster runs: assets, their resource, their executor, their IO manager."""
