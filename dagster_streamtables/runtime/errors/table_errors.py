"""Errors of tables that are missing or unreadable, or that others write at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dagster_streamtables.errors import (
    ConflictingCommit,
    DamagedTable,
    EnvironmentProblem,
    InvalidDefinition,
    QueryPosition,
    SourceProblem,
)
from dagster_streamtables.runtime.errors.error_messages import first_line, place_in


class LostHistory(Exception):
    """A file or a version that the refresh needed was deleted, or cannot be read."""


class MissingSource(SourceProblem):
    """A table that a query reads does not exist, or is not a Delta table."""


class NotInCatalog(MissingSource):
    """The catalog of a name does not know the table: whether it does now is only found out by
    trying, so such errors in a row suspend no stream table."""


def missing(
    name: str, location: str, *, where: QueryPosition | str = "", near: Sequence[str] = ()
) -> MissingSource:
    """The error of a missing table; `near` are the names that it may mean.

    The place is `where` the query names it; by default, the location.
    """
    there = "://" not in location and Path(location).exists()
    why = "its folder has no Delta log" if there else "nothing is stored there"
    fix = "create it, refresh the stream table of that name first, or correct the query"
    return MissingSource(
        f'source "{name}" is not a Delta table' if there else f'there is no table "{name}"',
        where=where or location,
        why=f"{why}: {location}" if where else why,
        fix=f"did you mean {' or '.join(near)}? If not, {fix}" if near else fix,
    )


def not_in_catalog(name: str, *, where: QueryPosition | str = "") -> NotInCatalog:
    """The error of a name that its catalog does not know."""
    return NotInCatalog(
        f'the catalog does not know the table "{name}"',
        where=where,
        why="it does not exist there, may not be seen, or Spark was not asked yet",
        fix="correct the name, or the rights of who asks; a catalog of the Spark session is asked "
        "by the first refresh",
    )


def in_root_and_catalog(name: str, place: str) -> InvalidDefinition:
    """The error of a name that a catalog and the root both have."""
    return InvalidDefinition(
        f'the name "{name}" has two tables',
        where=place,
        why="a catalog has one of this name, and so has the root",
        fix="give the catalog another prefix, rename the table below the root, or name one of them "
        "by its path",
    )


def replaced_in_catalog(name: str) -> ConflictingCommit:
    """The error of a table that was dropped and created again, elsewhere, a short time ago."""
    return ConflictingCommit(
        f"the catalog has another table {name} now",
        why="it was replaced after the catalog was asked where it is",
        fix="refresh again in ten minutes, when the catalog is asked again; the table is unchanged",
    )


def name_of_catalog(name: str) -> InvalidDefinition:
    """The error of a table to write whose name belongs to a catalog."""
    return InvalidDefinition(
        f'the name "{name}" belongs to a catalog',
        why="tables are written below the root, and a catalog chooses its own places",
        fix="give it a name of another schema, and register it in the catalog",
    )


def several_tables(name: str, found: Sequence[str]) -> InvalidDefinition:
    """The error of a name that no table has, and from which several differ only in case."""
    return InvalidDefinition(
        f'several tables are called "{name}", ignoring case',
        where=", ".join(found),
        why="Spark takes names that differ in case for one, and none is spelled so",
        fix=f"write one of them as it is spelled, for example {found[0]}",
    )


def unreadable_log(place: str, why: str) -> DamagedTable:
    return DamagedTable(
        "the log of a table cannot be read",
        where=place,
        why=why,
        fix="restore the file. An empty newest commit, left by a crash, can be deleted; so can a "
        "whole stream table, which its next refresh rebuilds",
    )


def unreadable_partition(place: str, why: str) -> DamagedTable:
    """The error of a partition's value that delta-rs does not take.

    After CONVERT TO DELTA, ``2020`` may be a DATE to Spark and ``1.0`` a DECIMAL(10,2); delta-rs
    refuses the whole table then. It writes -0.01 as ``0.-1``, which nothing reads.
    """
    return DamagedTable(
        "the value of a partition cannot be read",
        where=place,
        why=f"the log has it as a text that delta-rs does not take: {why}",
        fix="let Spark write these rows anew, for example by UPDATE … SET p = p, where p is the "
        "column that partitions the table",
    )


def empty(commit: str) -> DamagedTable:
    """The error of a commit without an action, as a full disk or a power failure leaves it.

    If it counted as a commit that changes nothing, its rows would be lost once its content is
    restored.
    """
    return unreadable_log(commit, "it is empty, and a commit has at least one action")


def lost_race(why: str) -> ConflictingCommit:
    """The error of the writer that commits second."""
    return ConflictingCommit(
        "another writer committed to the table during the refresh",
        why=why,
        fix="refresh again; this attempt wrote nothing",
    )


def lost_version(location: str, version: int) -> LostHistory:
    return LostHistory(f"{location}/: version {version} is gone")


def lost_file(error: LostHistory) -> DamagedTable:
    """The error of lost history that no other way of reading avoids."""
    return DamagedTable(
        "a file of a table is missing or unreadable",
        where=place_in(str(error)),
        why=first_line(str(error)),
        fix="restore the file, or repair its table (FSCK REPAIR TABLE, RESTORE)",
    )


def unreadable_root(root: str, error: Exception) -> EnvironmentProblem:
    """The error of a root; its reason is in the words of the operating system or the store."""
    local = None if "://" in root else Path(root)
    is_file = local is not None and local.is_file()
    return EnvironmentProblem(
        f'the root "{root}" cannot be read',
        where="" if local is None else str(local.absolute()),
        why="it is a file" if is_file else first_line(str(error)),
        fix="name a folder, or a URI that delta-rs supports, and grant permission to read it",
    )


NOT_UTF8 = "non UTF-8 data"
"""The words of delta-rs's reader of Parquet about a text."""


def no_utf8(where: str) -> SourceProblem:
    return SourceProblem(
        "a text is not UTF-8",
        where=where,
        why="Spark keeps any bytes in a STRING, as CAST(value AS STRING) makes them of a BINARY; "
        "readers of Arrow and JSON take only UTF-8",
        fix="repair the rows in the source (UPDATE … SET c = make_valid_utf8(c)), or follow a "
        "query that selects make_valid_utf8(c)",
    )
