"""``python -m dagster_streamtables.cli``."""

from dagster_streamtables.cli import app

app()
