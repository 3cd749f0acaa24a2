"""The public names of `dagster_streamtables.changes`, which `__init__` reads."""

from .subscription import tail as tail
