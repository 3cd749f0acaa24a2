"""One refresh in a process of its own, for a test to kill.

    python refresher.py ROOT DRIVER_ROWS NAME QUERY

Prints ``refreshing`` when it begins and ``done`` when it is through.
"""

from __future__ import annotations

import sys

from dagster_streamtables import Lake, StreamTable


def main(root: str, driver_rows: str, name: str, query: str) -> None:
    lake = Lake(root, driver_rows=int(driver_rows))
    lake.read(name).limit(1).collect()
    print("refreshing", flush=True)
    lake.refresh(StreamTable(name, query, differential_max_change_ratio=0))
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
