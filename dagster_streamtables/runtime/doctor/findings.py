"""What an examination of one table found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

_EXAMPLES = 3


class Trace(StrEnum):
    """What an erased commit may leave behind."""

    DATA_FILE = "data file"
    """No commit names it."""
    CHANGE_FILE = "change file"
    """A file of the Change Data Feed that no commit names."""
    TRANSACTION = "transaction"
    """The number of an application goes back, or is used twice."""
    CHECKSUM = "checksum"
    """It differs from the commits up to its version."""
    CHECKPOINT = "checkpoint"
    """It differs from the commits up to its version."""
    ACTION = "action"
    """A commit removes a missing file, or adds an existing one."""
    TIME = "time"
    """A commit is younger than the next one."""
    GAP = "gap"
    """A commit is missing."""


class Verdict(StrEnum):
    NONE = "no trace"
    POSSIBLE = "possible"
    """An aborted write, for example, leaves the same traces."""
    SURE = "sure"
    """No writer leaves such a log: it was altered."""


@dataclass(frozen=True)
class Finding:
    trace: Trace
    first: int
    """The first version in doubt."""
    last: int
    what: str
    count: int
    """The number of files, or of other things that were found."""
    examples: tuple[str, ...]
    """A few of them: paths, or what the log says."""
    sure: bool

    @property
    def versions(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def finding(
    trace: Trace, versions: tuple[int, int], what: str, found: Collection[str], *, sure: bool
) -> Finding:
    """A finding with a few of the things that were found."""
    first, last = versions
    examples = tuple(sorted(found)[:_EXAMPLES])
    return Finding(trace, first, max(first, last), what, len(found), examples, sure)


@dataclass(frozen=True)
class Examination:
    """One table, as its log and its files were when it was examined."""

    table: str
    location: str
    oldest: int
    """The version from which on the log has every commit."""
    newest: int
    findings: tuple[Finding, ...]
    recent: int
    """Files that no commit names and that a running write may still commit: they are younger than
    an hour, or younger than the newest commit."""
    aborted: int
    """Files that no commit names, of writers that lost a race or were killed: after them, only
    delta-rs committed, which erases no commit."""
    unjudged: int
    """Files that no commit names and that are older than the commits in the log."""

    @property
    def verdict(self) -> Verdict:
        if any(each.sure for each in self.findings):
            return Verdict.SURE
        return Verdict.POSSIBLE if self.findings else Verdict.NONE


@dataclass(frozen=True)
class Contradiction:
    trace: Trace
    first: int
    """The first version in doubt, by the versions alone."""
    last: int
    what: str
    found: Collection[str]
    """Paths, or what the log says."""
    sure: bool
    is_dated: bool = False
    """Whether the commit in doubt came soon after the files of these paths were written."""
