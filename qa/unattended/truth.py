"""Whether the reasons that are given are true, by what has happened since the last refresh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dagster_streamtables.runtime.model.refresh_report import Action, Refresh

_CAUSES = {
    r"the definition changed": {
        "edit", "change_mode", "rename", "refresh_from_an_old_checkout", "reload",
    },
    r'"orders" was dropped and created again': {"make_again", "put_back_a_copy"},
    r'"orders" was restored': {"put_back_a_copy", "make_again"},
    r'"orders" is at version \d+, before the \d+ read last': {"put_back_a_copy", "make_again"},
    r"somebody else changed rows of the table": {"write_into_a_stream_table"},
    r'the log of "orders" no longer has all commits': {"make_again", "put_back_a_copy", "age"},
    r'"orders" no longer has all files of the window': {
        "vacuum", "make_again", "put_back_a_copy", "restore",
    },
    r"files were rearranged only": {"compact", "vacuum", "restore"},
    r'changed rows? in "orders"': {
        "append", "delete", "update", "make_again", "put_back_a_copy", "restore", "hurry",
        "begin", "rest", "compact",
    },
    r"there is no table yet": {"begin", "rename"},
}  # fmt: skip
"""What a reason says, and the steps of which one must have happened."""
_NOTHING = "no source has a new version"
_FRESH = re.compile(r"Due, but without changes: (.*)\.")


@dataclass
class Past:
    """The steps so far, and how many there were when each table last changed."""

    steps: list[str] = field(default_factory=list[str])
    known: dict[str, int] = field(default_factory=dict[str, int])
    versions: dict[str, object] = field(default_factory=dict[str, object])

    def take(self, step: str) -> None:
        self.steps.append(step)

    def lies(self, done: Refresh) -> Iterator[str]:
        """What a refresh said that is not true; it is the last one from now on."""
        since = {*self.steps[self.known.get(done.table, 0) :]}
        for said, causes in _CAUSES.items():
            if re.search(said, done.reason) and not causes & since:
                yield f'{done.table}: "{done.reason}", after {sorted(since)}'
        reads = {name: head for name, head in done.seen.items() if name != done.table}
        if _NOTHING in done.reason and self.versions.get(done.table) not in (None, reads):
            yield f'{done.table}: "{done.reason}", and {reads} is not {self.versions[done.table]}'
        if done.action is not Action.NO_DATA:  # which leaves the window for the next one
            # The step that is being taken may go on to be a cause.
            self.known[done.table] = max(len(self.steps) - 1, 0)
        self.versions[done.table] = reads


def said_to_be_fresh(message: str) -> list[str]:
    found = _FRESH.search(message)
    return found[1].split(", ") if found else []
