"""Random histories on two clusters of PostgreSQL, and on Delta tables.

python -m qa.replication_oracle --histories 500 [--first 0]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import typer

from qa.replication_oracle.clusters import Cluster
from qa.replication_oracle.history import History
from replication.postgres.database import running


def main(histories: int = 500, first: int = 0) -> None:
    """Run them, and stop at the first that differs.

    Args:
        histories: How many.
        first: The seed of the first; one history is repeated by `--histories 1 --first SEED`.
    """
    began, refused, stops, stopped = time.monotonic(), 0, 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="streamtables-oracle-") as name,
        running(Cluster) as publisher,
        running(Cluster) as subscriber,
    ):
        for seed in range(first, first + histories):
            history = History(seed, publisher, subscriber, Path(name) / str(seed))
            history.run()
            refused, stops = refused + history.refused, stops + history.stops
            stopped += history.stops > 0
            if (seed + 1 - first) % 25 == 0:
                print(f"{seed + 1 - first} histories", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{histories} histories equal in {seconds:.0f} s; {refused} statements were refused by the "
        f"publisher; {stopped} histories stopped, {stops} times"
    )


if __name__ == "__main__":
    typer.run(main)
