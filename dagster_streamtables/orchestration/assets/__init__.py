"""What Dagster runs: assets, and their resource, executor and IO manager."""
