"""The command ``streamtables``: the operations of `Lake`, from a shell.

Exit codes:
    0   success
    1   an error (on stderr), or at least one of several tables failed
    2   invalid command line
    3   the answer is no: `check` found differences, `explain` a query that cannot be maintained,
        `status --strict` a stale or stopped table, `orphans --strict` an orphaned table,
        `spark status` no server, `spark doctor` a fault, `doctor` an altered log,
        `worker status` no living worker, `subscribe` history that is no longer there
"""

from dagster_streamtables.cli import (  # noqa: F401 - each adds its commands to the app
    check,
    doctor,
    orphans,
    publications,
    refresh,
    replication_declaration,
    replications,
    serve,
    slots,
    spark,
    status,
    subscribe,
    vacuum,
    worker,
)
from dagster_streamtables.cli.console import app

__all__ = ["app"]
