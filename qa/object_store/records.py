"""What a writer believes: a file for each, which outlives its process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Belief:
    """Of one commit, by its id."""

    id: str
    kind: str
    """How it is made: by the log store, by INSERT, by delta-rs with a row or without."""
    said: str = "begun"
    """Or done, or failed. A killed writer has only begun."""
    version: int | None = None
    digest: str | None = None
    """Of the bytes, if the writer made them itself."""
    why: str = ""

    @property
    def has_row(self) -> bool:
        return self.kind in ("insert", "rows")

    @property
    def by_spark(self) -> bool:
        return self.kind in ("insert", "log store")


class Records:
    def __init__(self, file: Path) -> None:
        self._file = file.open("a")

    def note(self, belief: Belief) -> None:
        self._file.write(json.dumps(belief.__dict__) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def done(self, belief: Belief, version: int | None, digest: str | None = None) -> None:
        self.note(replace(belief, said="done", version=version, digest=digest))

    def failed(self, belief: Belief, why: str) -> None:
        self.note(replace(belief, said="failed", why=why[:500]))


def beliefs(folder: Path) -> dict[str, Belief]:
    """The last that is said of each commit, in all files of a folder."""
    return {each.id: each for file in sorted(folder.glob("*.jsonl")) for each in _read(file)}


def _read(file: Path) -> Iterator[Belief]:
    for line in file.read_text().splitlines(keepends=True):
        if line.endswith("\n"):  # else the writer was killed in the middle of it
            yield Belief(**json.loads(line))
