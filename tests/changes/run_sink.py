"""The same sink as the function of a change asset, run again and again until it is killed.

python -m changes.run_sink ROOT DATABASE SLOT MAX_ROWS
"""

from __future__ import annotations

import sys

import dagster as dg

from changes.sink import keep, opened, stored_token
from dagster_streamtables import Changes, StreamTablesResource, change_asset
from dagster_streamtables.runtime.lake import Lake

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main(root: str, database: str, slot: str, max_rows: str) -> None:
    store = opened(database)

    @change_asset(
        relation="t",
        slot=slot,
        as_of=0,
        max_rows=int(max_rows),
        stored_token=lambda: stored_token(store),
        retry_policy=None,
    )
    def rows(changes: Changes) -> None:
        keep(store, changes.rows.to_pylist(), changes.token)

    lake = StreamTablesResource(root=Lake(root).root)
    print("begun", flush=True)
    with dg.DagsterInstance.ephemeral() as instance:
        while True:
            dg.materialize(
                [rows], instance=instance, resources={"streamtables": lake}, run_config=QUIET
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
