"""`python -m qa.object_store.delta_rs_writer`: a process that appends by delta-rs.

Each commit is tried once: delta-rs takes its own commit, whose answer was lost, for another
writer's, and its next try makes the same commit again as a later version.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from qa.object_store.jobs import Job, serve
from qa.object_store.records import Belief, Records


def work(job: Job) -> None:
    records = Records(job.root / f"{job.name}.jsonl")
    table: DeltaTable | None = None
    for id, with_row in job.turns(job.name):
        belief = Belief(id, "rows" if with_row else "empty")
        try:
            if table is None:
                table = DeltaTable(job.place, storage_options=dict(job.store.options))
            table.update_incremental()
        except Exception:
            continue  # the store is slow
        records.note(belief)
        version = table.version() + 1
        try:
            _commit(table, belief)
        except Exception as error:
            records.failed(belief, f"{type(error).__name__}: {error}")
        else:
            records.done(belief, version)


def _commit(table: DeltaTable, belief: Belief) -> None:
    told = CommitProperties(custom_metadata={"userMetadata": belief.id}, max_commit_retries=0)
    if belief.has_row:
        rows = pa.table({"id": [belief.id]})
        write_deltalake(table, rows, mode="append", commit_properties=told)
    else:
        table.create_write_transaction([], "append", table.schema(), commit_properties=told)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        serve(work)
