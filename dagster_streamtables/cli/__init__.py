"""The command ``streamtables``: what `Lake` can do with stream tables, from a shell.

Exit codes:
    0   done
    1   an error, told on stderr; of many tables, one or more could not be refreshed
    2   the command line itself is wrong
    3   the answer is no: `check` found differences, `explain` a query that cannot be maintained,
        `status --strict` a table that is not well, `spark status` no server
"""

from dagster_streamtables.cli import act, judge, keep, look, measure, spark
from dagster_streamtables.cli.app import app

__all__ = ["act", "app", "judge", "keep", "look", "measure", "spark"]
