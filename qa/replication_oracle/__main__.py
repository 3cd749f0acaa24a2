"""The command `python -m qa.replication_oracle`."""

from __future__ import annotations

import typer

from qa.replication_oracle.command import main

if __name__ == "__main__":
    typer.run(main)
