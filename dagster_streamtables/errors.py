"""Every error this package raises on purpose.

A message has up to four parts, in this order:

    what      one line, no full stop, naming the table it is about
    where     file, line and column, and the author's own words there, underlined
    why       the fact that makes it impossible
    fix       what to write instead

`what` is enough for a log line; `fix` is enough for a person in a hurry. The classes say who must
act: the author of the definition, the owner of a source, the operator of the machine, or nobody,
because trying again is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# What moves the cursor, colours, hides or turns around what stands beside it, or begins a line.
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"


@dataclass(frozen=True)
class Place:
    """Words of an author, where they stand.

    >>> print(Place(2, 3, "  rand()\\n  ^^^^^^").within("tables/revenue.sql", 5))
    tables/revenue.sql:6:3
      rand()
      ^^^^^^
    """

    line: int
    """Counted from 1; in the query, as long as no file is told."""
    column: int
    """Counted from 1."""
    shown: str = ""
    """The line, and carets below the words."""
    file: str | None = None
    """Empty where there is none; None where whoever knows it has not told it yet."""

    def within(self, file: str | None, first: int = 1) -> Place:
        """The same place, in the file.

        Args:
            file: That holds the query.
            first: The line of the file in which the query begins.
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
        # In YAML a query is indented, and what its columns are there, nobody knows.
        column = f":{self.column}" if Path(self.file).suffix == ".sql" else ""
        return f"{_seen_from_here(self.file)}:{self.line}{column}"


class StreamTablesError(Exception):
    """The base of them all."""

    def __init__(self, what: str, *, where: str | Place = "", why: str = "", fix: str = "") -> None:
        self.what = one_line(what)
        super().__init__(self.what)
        self.place = where if isinstance(where, Place) else None
        self.where, self.why, self.fix = legible(str(where)), legible(why), legible(fix)

    def __str__(self) -> str:
        parts = [self.what, _indent(self.where), _label("why", self.why), _label("fix", self.fix)]
        return "\n\n".join(part for part in parts if part)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self._parts())

    def changed(self, kind: type[StreamTablesError] | None = None, **parts: Any) -> Any:
        """The same error with other parts, or of another kind."""
        return (kind or type(self))(**(self._parts() | parts))

    def about(self, table: str) -> StreamTablesError:
        """The same error, naming the stream table it is about."""
        named = f'stream table "{table}": '
        what = self.what if self.what.startswith(named) else named + self.what
        return self.changed(what=what)

    def within(self, file: str | None, line: int = 1) -> StreamTablesError:
        """The same error, its place told in the file that holds the query; empty for none."""
        if self.place is None or file is None:
            return self
        return self.changed(where=self.place.within(file, line))

    def _parts(self) -> dict[str, Any]:
        where = self.place or self.where
        return {"what": self.what, "where": where, "why": self.why, "fix": self.fix}


class InvalidDefinition(StreamTablesError):
    """The definition of a stream table says something that cannot be: its author must change it."""


class UnsupportedQuery(InvalidDefinition):
    """The query is valid SQL, but its change cannot be computed."""


class RejectedQuery(InvalidDefinition):
    """Spark does not run the query: it names what is not there, or asks for what Spark has not."""


class FailedQuery(StreamTablesError):
    """The query has no answer over what its sources hold: their owner or its author must act."""


class RunawayRecursion(FailedQuery):
    """A recursion went further than it may: its author must end it, or allow it to go on."""


class SourceProblem(StreamTablesError):
    """A source is missing, is no Delta table, or lost what the query needs: its owner must act."""


class DamagedTable(SourceProblem):
    """The log or a file of a table, a source or the stream table, is there and cannot be read."""


class SuspendedTable(StreamTablesError):
    """Too many errors in a row, or a person, stopped the table: somebody must resume it."""


class RefusedOperation(StreamTablesError):
    """What an operator asks for cannot be done, or would harm something: ask for something else."""


class ConflictingCommit(StreamTablesError):
    """Another refresh of the same table committed first; trying again is enough."""


class EnvironmentProblem(StreamTablesError):
    """The machine lacks something, such as Java or room on a disk: its operator must act."""


class LostSpark(EnvironmentProblem):
    """Spark went away in the middle of a refresh; trying again is enough where it comes back."""


def legible(text: str) -> str:
    """A text of somebody else, for a terminal or a log: its control characters as escapes.

    >>> print(legible("it is \\x1b[31mred"))
    it is \\u001b[31mred
    """
    return re.sub(_CONTROLS, _escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same, and its line breaks, too.

    >>> print(one_line("one\\ntwo"))
    one\\ntwo
    """
    return legible(text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"  # as JSON has it, too


def underline(sql: str, start: int, end: int) -> Place:
    """The line of `sql` that holds ``sql[start : end + 1]``, its number, and carets below it.

    Where they begin with spaces or line breaks, what follows these is shown.

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
    return Place(number, start - begin + 1, f"{line}\n{carets}")


def _seen_from_here(file: str) -> str:
    """As short as the shell takes it, which may be anywhere in the project or outside."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _rebuild(kind: type[StreamTablesError], parts: dict[str, Any]) -> object:
    return kind(**parts)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _label(label: str, text: str) -> str:
    # Lines of a text that is quoted stand apart: none can pass for a line of a log.
    return f"{label}: {_indent(text).strip()}" if text else ""
