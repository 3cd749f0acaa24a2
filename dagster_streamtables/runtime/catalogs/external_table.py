"""`ExternalTable`: where the table of a name in a catalog is; the refusals of what is none."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote, urlsplit

from dagster_streamtables.errors import SourceProblem

_MANAGED = re.compile(r"(delta\.feature\.)?catalog(Managed|Owned(-preview)?)")
"""The table feature whose commits the catalog arbitrates, also by its name of a preview."""
_STORES = ("s3", "s3a", "gs", "abfs", "abfss", "az")

SPARE = 600.0
"""Seconds before their end at which credentials are replaced: a refresh may take as long."""


@dataclass(frozen=True)
class ExternalTable:
    """A Delta table of a catalog."""

    location: str
    """The path or URI."""
    id: str
    """The table's id in the catalog."""
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Credentials that the catalog vended, as options of delta-rs."""
    expires: float | None = None
    """When the credentials end, in seconds since 1970; None for never."""


class ExternalCatalog(Protocol):
    """A catalog that can be asked. Threads may share it."""

    lifetime: float
    """Seconds until a table is asked for again."""

    by_name: bool
    """Whether Spark reads its tables by their names, since it may refuse their paths."""

    @property
    def can_be_asked(self) -> bool:
        """Whether `find` may be called; if not, only earlier answers are known."""
        ...

    def find(self, name: str, known: ExternalTable | None) -> ExternalTable | None:
        """The table of a whole name; None if the catalog does not know it.

        Args:
            name: Its parts joined by dots, such as ``main.sales.orders``.
            known: The last answer, whose credentials may still be valid.

        Raises:
            SourceProblem: It is a view, is not stored as Delta, or is managed by the catalog.
            EnvironmentProblem: The catalog refuses the request.
            LostStore: The catalog does not answer.
        """
        ...


def location_of(name: str, uri: str) -> str:
    """The location of a table as delta-rs takes it, from that in a catalog.

    >>> location_of("sales.orders", "file:/lake/a%20b"), location_of("t", "s3://bucket/t/")
    ('/lake/a b', 's3://bucket/t')

    Raises:
        SourceProblem: delta-rs does not reach it.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return (unquote(parts.path) if parts.scheme else uri).rstrip("/")
    if parts.scheme not in _STORES:
        raise SourceProblem(
            f'the table "{name}" is in a store that cannot be read',
            where=uri,
            why=f"only files, S3, GCS and Azure can be, and not {parts.scheme}",
            fix="let the table of the catalog be an external one, in a store of these",
        )
    return uri.rstrip("/")


def comparable_location(location: str) -> str:
    """A path or URI in the form in which equal ones are equal texts.

    >>> comparable_location("s3a://bucket/t") == comparable_location("s3://bucket/t/")
    True
    """
    return re.sub("^s3a://", "s3://", location).rstrip("/")


def require_readable(name: str, *, format: str, kind: str, features: Collection[str]) -> None:
    """Refuse what no stream table can read.

    Args:
        name: As the query has it.
        format: Of the files, such as ``delta``.
        kind: Of the table, such as ``MANAGED`` or ``VIEW``.
        features: The names of its features, or of its properties.

    Raises:
        SourceProblem: It is a view, is not stored as Delta, or is managed by the catalog.
    """
    if "VIEW" in kind.upper():
        raise SourceProblem(
            f'"{name}" is a view of the catalog',
            why="its changes are in no log",
            fix="name the tables that it reads, or declare its query as a view here",
        )
    if format.lower() != "delta":
        raise SourceProblem(
            f'the table "{name}" is not a Delta table',
            why=f"the catalog says that it is stored as {format or 'something else'}",
            fix="convert it (CONVERT TO DELTA), or replicate it into a Delta table",
        )
    if any(map(_MANAGED.fullmatch, features)):
        raise SourceProblem(
            f'the commits of "{name}" are managed by the catalog',
            why="its newest commits are not in its log, so a change cannot be read from there",
            fix="drop the table feature catalogManaged, or read a copy that another job keeps",
        )
