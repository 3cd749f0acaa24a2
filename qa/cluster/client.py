"""The process that refreshes: it retries what may pass, as a run of Dagster does."""

from __future__ import annotations

import sys
import time

from dagster_streamtables import Lake
from dagster_streamtables.runtime.errors.error_translation import may_pass
from qa.cluster.history import TABLES

_TRIES = 20
_PAUSE = 3.0


def main(root: str, address: str) -> None:
    """Refresh all tables, and print an error that ends a try, and its time in seconds."""
    lake = Lake(root, spark=address)
    for _ in range(_TRIES):
        began = time.monotonic()
        errors = [each.error for each in lake.refresh_all(TABLES, max_concurrent=2) if each.error]
        if not errors:
            return
        took = time.monotonic() - began
        for error in errors:
            print(f"  after {took:.0f} s: {type(error).__name__}: {str(error)[:200]}", flush=True)
        if not any(map(may_pass, errors)):
            sys.exit("an error that nothing but a person can mend")
        time.sleep(_PAUSE)
    sys.exit(f"the refreshes failed {_TRIES} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
