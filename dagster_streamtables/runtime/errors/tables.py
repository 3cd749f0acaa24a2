"""Errors of tables: one that is not there or cannot be read, or that others write meanwhile."""

from __future__ import annotations

from pathlib import Path

from dagster_streamtables.errors import (
    ConflictingCommit,
    DamagedTable,
    EnvironmentProblem,
    SourceProblem,
)
from dagster_streamtables.runtime.errors.foreign_words import first_line, place_in


class LostHistory(Exception):
    """A file or a version that the refresh needed is no longer there, or cannot be read."""


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


def damaged(place: str, why: str) -> DamagedTable:
    """The log at a place is there and says nothing that can be read."""
    return DamagedTable(
        "the log of a table cannot be read",
        where=place,
        why=why,
        fix="bring the file back; an empty newest commit, which a crash leaves, may be deleted; "
        "so may a whole stream table, its next refresh makes it anew",
    )


def empty(commit: str) -> DamagedTable:
    """A commit without an action.

    A full disk, or a machine that lost its power, leaves one behind. To take it for a commit that
    changes nothing would leave its rows out for good once its content is back.
    """
    return damaged(commit, "it is empty, and a commit has at least one action")


def lost_race(why: str) -> ConflictingCommit:
    """The error of whoever commits second."""
    return ConflictingCommit(
        "another writer committed to the table during the refresh",
        why=why,
        fix="refresh again; nothing of this attempt was written",
    )


def lost_version(location: str, version: int) -> LostHistory:
    return LostHistory(f"{location}/: version {version} is gone")


def lost_file(error: LostHistory) -> DamagedTable:
    """The same where nothing else can be tried."""
    return DamagedTable(
        "a file of a table is not there, or cannot be read",
        where=place_in(str(error)),
        why=first_line(str(error)),
        fix="restore the file, or repair its table (FSCK REPAIR TABLE, RESTORE)",
    )


def unreadable_root(root: str, error: Exception) -> EnvironmentProblem:
    """The words are those of the operating system or the store, of which each has its own."""
    return EnvironmentProblem(
        f'the root "{root}" cannot be read',
        why=first_line(str(error)),
        fix="give a folder, or a URI that delta-rs knows, and the permission to read it",
    )
