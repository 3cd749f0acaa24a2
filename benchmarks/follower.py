"""A process that follows a table, and says when it had the rows of each version.

python -m benchmarks.follower ROOT TABLE: one line for each batch, the version and the time.
"""

from __future__ import annotations

import sys
import time

from dagster_streamtables import Lake, subscribe

COLUMN = "_timestamp"


def main(root: str, table: str) -> None:
    with subscribe(Lake(root), table, snapshot=False) as changes:
        for batch in changes:
            versions = batch.column(COLUMN).to_pylist()
            print(max(versions), time.time(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
