"""The command `python -m tests.replication.oracle`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

# The modules of the tests import one another as pytest lets them.
sys.path.insert(0, str(Path(__file__).parents[2]))

from replication.oracle.command import main

if __name__ == "__main__":
    typer.run(main)
