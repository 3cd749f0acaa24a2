"""The error of a table that a query reads and that is not there."""

from __future__ import annotations

from pathlib import Path

from dagster_streamtables.errors import SourceProblem


class MissingSource(SourceProblem):
    """A table that a query reads is not there, or is no Delta table."""

    source: str = ""


def missing(name: str, place: str) -> MissingSource:
    there = "://" not in place and Path(place).exists()
    error = MissingSource(
        f'source "{name}" is not a Delta table' if there else f'there is no table "{name}"',
        where=place,
        why="its folder has no Delta log" if there else "nothing is stored at that place",
        fix="create it, refresh the stream table of that name first, or correct the query",
    )
    error.source = name
    return error
