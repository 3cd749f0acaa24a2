"""The numbers that applications give their commits, which only increase.

An application that repeats a number finds no commit of that number, as if it had been erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dagster_streamtables.runtime.doctor.commits import CommitRecord
from dagster_streamtables.runtime.doctor.contradictions import Contradiction
from dagster_streamtables.runtime.doctor.findings import Trace


class Transactions:
    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}
        """Application → its newest number, and the version of that commit."""

    def begin(self, version: int, numbers: Mapping[str, int]) -> None:
        """The numbers in a checkpoint, of which those in earlier commits are known already."""
        for application, number in numbers.items():
            self._newest.setdefault(application, (number, version))

    def follow(self, commit: CommitRecord) -> Iterator[Contradiction]:
        for application, number in commit.transactions.items():
            newest, version = self._newest.get(application, (None, commit.version))
            if newest is not None and number <= newest and not commit.replaces:
                what = "the number of an application's transaction is not greater than before"
                told = f"{application}: {newest} in version {version}, {number} in {commit.version}"
                yield Contradiction(
                    Trace.TRANSACTION, version, commit.version, what, [told], sure=False
                )
            self._newest[application] = number, commit.version
