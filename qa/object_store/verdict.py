"""What became of the commits of a table, counted at the store and in what its writers believe."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from qa.object_store.records import Belief, beliefs
from qa.object_store.store import AuditedStore

WRONG = ("overwritten", "put twice", "lost", "made twice", "of nobody", "torn", "gaps",
         "elsewhere", "other bytes", "rows")  # fmt: skip
"""
overwritten: another writer's commit was there, and the put was answered with 200.
put twice: the same, by its own writer.
lost: done, as its writer believes, and in no commit.
made twice: in two commits. of nobody: begun by nobody.
torn: no whole lines of JSON. gaps: versions that are missing.
elsewhere: in another version than its writer believes; other bytes: not those of its writer.
rows: rows of the table that its commits do not have, and the other way round.
"""


@dataclass
class Verdict:
    numbers: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def count(self, what: str, found: Iterable[Any]) -> None:
        said = [str(each) for each in found]
        self.numbers[what] += len(said)
        if what in WRONG:
            self.examples += [f"{what}: {each}" for each in said[:3]]

    def add(self, other: Verdict) -> None:
        self.numbers.update(other.numbers)
        self.examples += other.examples

    @property
    def wrong(self) -> dict[str, int]:
        return {what: n for what in WRONG if (n := self.numbers[what])}

    @property
    def right(self) -> dict[str, int]:
        return {what: n for what, n in sorted(self.numbers.items()) if n and what not in WRONG}


@dataclass(frozen=True)
class Commit:
    version: int
    id: str | None
    digest: str
    has_row: bool


def judge(store: AuditedStore, bucket: str, folder: Path) -> Verdict:
    verdict = Verdict()
    _audit(verdict, store.audited(bucket))
    log, known = store.log(bucket), beliefs(folder)
    found = whole_commits(log)
    commits = list(found.values())
    verdict.count("torn", sorted(log.keys() - found.keys()))
    verdict.count("gaps", sorted(set(range(max(log) + 1)) - set(log)))
    verdict.count("versions", log)
    _compare(verdict, commits, known)
    table = DeltaTable(store.place(bucket), storage_options=dict(store.options))
    held = pa.table(table.to_pyarrow_table()).column("id").to_pylist()
    expected = Counter(each.id for each in commits if each.has_row)
    rows = Counter(held)
    verdict.count("rows", [*(rows - expected).elements(), *(expected - rows).elements()])
    return verdict


def whole_commits(log: dict[int, bytes]) -> dict[int, Commit]:
    found: dict[int, Commit] = {}
    for version, content in sorted(log.items()):
        with suppress(ValueError):
            found[version] = _read(version, content)
    return found


def _audit(verdict: Verdict, lines: list[dict[str, Any]]) -> None:
    over = [each for each in lines if each["status"] == 200 and each["existed"]]
    again = [each for each in over if each["before"] == each["digest"]]
    verdict.count("overwritten", [_short(each) for each in over if each not in again])
    verdict.count("put twice", [_short(each) for each in again])
    verdict.count("answered 412", [each for each in lines if each["status"] == 412])
    verdict.count("deleted commits", [each for each in lines if each["method"] == "DELETE"])


def _compare(verdict: Verdict, commits: list[Commit], known: dict[str, Belief]) -> None:
    there: dict[str, list[Commit]] = {}
    for each in commits:
        if each.version:  # 0 made the table
            there.setdefault(str(each.id), []).append(each)
    verdict.count("made twice", [id for id, found in there.items() if len(found) > 1])
    verdict.count("of nobody", there.keys() - known.keys())
    for belief in known.values():
        engine = "Spark" if belief.by_spark else "delta-rs"
        found = there.get(belief.id, [])
        state = "killed" if belief.said == "begun" else belief.said
        verdict.count(f"{state}, {engine}", [belief.id])
        if belief.said != "done":
            verdict.count(f"{state}, but there, {engine}", found)
        elif not found:
            verdict.count("lost", [f"{belief.id} version {belief.version}"])
            verdict.count(f"lost of {engine}", [belief.id])
        elif belief.version not in (None, found[0].version):
            verdict.count("elsewhere", [belief.id])
        elif belief.digest not in (None, found[0].digest):
            verdict.count("other bytes", [belief.id])


def _read(version: int, content: bytes) -> Commit:
    """
    Raises:
        ValueError: The commit is not whole.
    """
    if not content.endswith((b"}\n", b"}")):
        raise ValueError(version)
    actions = [json.loads(line) for line in content.splitlines()]
    info = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    has_row = any("add" in each for each in actions)
    return Commit(version, info.get("userMetadata"), hashlib.sha256(content).hexdigest(), has_row)


def _short(line: dict[str, Any]) -> str:
    return f"{line['bucket']} {line['key'][-25:]} by {line['agent'][:20]}"
