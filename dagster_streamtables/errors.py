"""Every error that this package raises on purpose.

A message has up to four parts, in this order:

    what      one line, no full stop, naming the table it is about
    where     file, line and column, and the author's own words there, underlined
    why       the reason
    fix       what to do or write instead

`what` is enough for a log line; `fix` is enough for a person in a hurry. The class shows who must
act: the author of the definition, the owner of a source, the operator of the machine, or nobody,
because a retry is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

__all__ = [
    "ConflictingCommit",
    "DamagedTable",
    "EmptyBoundsWarning",
    "EnvironmentProblem",
    "ExperimentalDialect",
    "FailedQuery",
    "HistoryUnavailable",
    "InvalidDefinition",
    "LostPublisher",
    "LostRelation",
    "LostSpark",
    "LostStore",
    "PublisherProblem",
    "RefusedFullRefresh",
    "RefusedOperation",
    "RejectedQuery",
    "ReplicationConflict",
    "RunawayRecursion",
    "SourceProblem",
    "StreamTablesError",
    "SuspendedTable",
    "TargetProblem",
    "UnsupportedQuery",
]

# Characters that move the cursor, color, hide or reverse the text around them, or break the line.
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"


@dataclass(frozen=True)
class QueryPosition:
    """The place of some words of the author.

    >>> print(QueryPosition(2, 3, "  rand()\\n  ^^^^^^").within("tables/revenue.sql", 5))
    tables/revenue.sql:6:3
      rand()
      ^^^^^^
    """

    line: int
    """Counted from 1: in the file, or in the query while the file is unknown."""
    column: int
    """Counted from 1."""
    shown: str = ""
    """The line, with carets below the words."""
    file: str | None = None
    """Empty if the query is in no file; None until that is known."""

    def within(self, file: str | None, first: int = 1) -> QueryPosition:
        """The same place, counted from the start of the file.

        Args:
            file: The file that holds the query; empty for none.
            first: The line of the file on which the query begins.
        """
        if self.file is not None:
            return self
        return replace(self, file=file or "", line=self.line + (first - 1 if file else 0))

    def __str__(self) -> str:
        return "\n".join(part for part in (self._head, self.shown) if part)

    @property
    def _head(self) -> str:
        if not self.file:
            return f"line {self.line}, column {self.column}"
        # YAML indents the query, so its columns in the file are unknown.
        column = f":{self.column}" if Path(self.file).suffix == ".sql" else ""
        return f"{_relative_path(self.file)}:{self.line}{column}"


class StreamTablesError(Exception):
    """The base class of all errors of this package."""

    def __init__(
        self, what: str, *, where: str | QueryPosition = "", why: str = "", fix: str = ""
    ) -> None:
        self.what = one_line(what)
        super().__init__(self.what)
        self.place = where if isinstance(where, QueryPosition) else None
        self.where, self.why, self.fix = legible(str(where)), legible(why), legible(fix)

    def __str__(self) -> str:
        parts = [self.what, _indent(self.where), _label("why", self.why), _label("fix", self.fix)]
        return "\n\n".join(part for part in parts if part)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), **self._parts()), ()

    def with_parts(self, kind: type[StreamTablesError] | None = None, **parts: Any) -> Any:
        """The same error with some parts replaced, or of another class."""
        return (kind or type(self))(**(self._parts() | parts))

    def about(self, table: str) -> StreamTablesError:
        """The same error, with the stream table named first."""
        named = f'stream table "{table}": '
        what = self.what if self.what.startswith(named) else named + self.what
        return self.with_parts(what=what)

    def within(self, file: str | None, line: int = 1) -> StreamTablesError:
        """The same error, with its place in the file that holds the query (empty: no file)."""
        if self.place is None or file is None:
            return self
        return self.with_parts(where=self.place.within(file, line))

    def _parts(self) -> dict[str, Any]:
        where = self.place or self.where
        return {"what": self.what, "where": where, "why": self.why, "fix": self.fix}


class InvalidDefinition(StreamTablesError):
    """The definition of a stream table is invalid: its author must change it."""


class UnsupportedQuery(InvalidDefinition):
    """The query is valid SQL, but its change cannot be computed."""


class RejectedQuery(InvalidDefinition):
    """Spark rejects the query, which names or uses something that Spark does not have."""


class FailedQuery(StreamTablesError):
    """The query fails on the rows of its sources: their owner or the query's author must act."""


class RunawayRecursion(FailedQuery):
    """A recursion exceeded its limit: the query's author must end it, or raise the limit."""


class SourceProblem(StreamTablesError):
    """A source is missing, is not a Delta table, or lost needed data: its owner must act."""


class LostRelation(SourceProblem):
    """A followed table was dropped, or a column that its follower reads: follow it again."""


class HistoryUnavailable(SourceProblem):
    """A table no longer has the history that a follower needs: it must begin with a new snapshot.

    A vacuum deleted files, the log was cleaned up, or another table took the place.
    """


class PublisherProblem(SourceProblem):
    """The publisher refuses, or what it publishes cannot be replicated: its owner must act."""


class DamagedTable(SourceProblem):
    """A log or a data file, of a source or of the stream table, exists but cannot be read."""


class SuspendedTable(StreamTablesError):
    """The table was suspended, by a person or after repeated errors: somebody must resume it."""


class RefusedOperation(StreamTablesError):
    """The requested operation is impossible or would do harm: request something else."""


class RefusedFullRefresh(RefusedOperation):
    """A refresh would run the whole query, which `on_full` refuses: somebody must request it."""


class ReplicationConflict(RefusedOperation):
    """A change does not fit the rows of its target: change them, or skip it."""


class TargetProblem(RefusedOperation):
    """A target is not a Delta table, or its columns do not take what is published."""


class ConflictingCommit(StreamTablesError):
    """Another refresh of the same table committed first; a retry is enough."""


class EnvironmentProblem(StreamTablesError):
    """The machine lacks something, such as Java or disk space: its operator must act."""


class LostStore(EnvironmentProblem):
    """The object store did not answer, or had too many requests; a retry is enough once it does."""


class LostSpark(EnvironmentProblem):
    """The connection to Spark was lost during a refresh; a retry is enough once Spark is back."""


class LostPublisher(EnvironmentProblem):
    """The publisher cannot be reached; a retry is enough once it is back."""


class EmptyBoundsWarning(UserWarning):
    """A subscription begins where it ends, so it is empty."""


class ExperimentalDialect(UserWarning):
    """The translation of a query's dialect follows the documentation of its database; the results
    were never compared with the database."""


def legible(text: str) -> str:
    """A foreign text made safe for a terminal or a log: control characters become escapes.

    >>> print(legible("it is \\x1b[31mred"))
    it is \\u001b[31mred
    """
    return re.sub(_CONTROLS, _escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Like `legible`, but line breaks are also escaped.

    >>> print(one_line("one\\ntwo"))
    one\\ntwo
    """
    return legible(text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"  # as in JSON


def underline(sql: str, start: int, end: int) -> QueryPosition:
    """The place of ``sql[start : end + 1]``: its line and column, with carets below the words.

    Leading spaces and line breaks are skipped.

    >>> print(underline("SELECT id,\\n  rand() AS r\\nFROM t", 13, 18))
    line 2, column 3
      rand() AS r
      ^^^^^^
    """
    words = sql[start : end + 1]
    start += len(words) - len(words.lstrip()) if words.strip() else 0
    begin = sql.rfind("\n", 0, start) + 1
    stop = sql.find("\n", start)
    stop = stop if stop >= 0 else len(sql)
    line = sql[begin:stop]
    number = sql.count("\n", 0, start) + 1
    carets = " " * (start - begin) + "^" * max(1, min(end + 1, stop) - start)
    return QueryPosition(number, start - begin + 1, f"{line}\n{carets}")


def _relative_path(file: str) -> str:
    """Relative to the working directory if the file is below it, so that a shell accepts it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _label(label: str, text: str) -> str:
    # Continuation lines are indented, so that a quoted text cannot pass for a log line.
    return f"{label}: {_indent(text).strip()}" if text else ""
