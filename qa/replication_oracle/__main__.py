"""The command `python -m qa.replication_oracle`."""

import typer

from qa.replication_oracle.command import main

if __name__ == "__main__":
    typer.run(main)
