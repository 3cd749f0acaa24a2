"""`python -m qa.deployment`: Dagster on several machines, whose parts are killed.

    python -m qa.deployment --faults 30 --seed 1

The project, its instance and its commands are those of docs/deployment.md. After each fault all
comes to rest without anybody: each stream table equals its query, Dagster's last event is the
table's last version, and no run is unfinished.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import typer

from qa.deployment.deployment import FAULTS, Deployment


def main(faults: int = 10, seed: int = 1, only: str = "") -> None:
    """Cause a fault at a time, and wait each time until all is at rest.

    Args:
        faults: How many.
        seed: Of their kinds, their moments, and the rows.
        only: The kinds, separated by commas; all by default.
    """
    random = Random(seed)
    kinds = [each for each in sorted(FAULTS) if not only or each in only.split(",")]
    with (
        tempfile.TemporaryDirectory(prefix="deployment-", ignore_cleanup_errors=True) as name,
        Deployment.start(Path(name), random) as deployment,
    ):
        print(f"start: at rest after {deployment.rest():.0f} s", flush=True)
        for number in range(faults):
            kind = random.choice(kinds)
            deployment.write()
            said = FAULTS[kind](deployment)
            deployment.write()
            print(f"{number}: {kind}{said}, at rest after {deployment.rest():.0f} s", flush=True)


if __name__ == "__main__":
    typer.run(main)
