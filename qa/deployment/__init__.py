"""Dagster on several machines, as docs/deployment.md has it: what is left of the faults of each."""
