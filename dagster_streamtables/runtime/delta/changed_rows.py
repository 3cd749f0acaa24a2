"""How many rows a window changed, as far as its commits tell: an estimate, and never too low."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import Action, data_changes, metrics_of


@dataclass(frozen=True)
class Moves:
    """The files of one commit that say that their rows are other rows than before."""

    came: Mapping[str, int | None]
    """By path, the rows of a file, those under its deletion vector too."""
    hidden_after: Mapping[str, int]
    """By path, the rows under the vector of a file that came."""
    hidden_before: Mapping[str, int]
    """The same of the files that went."""
    copied: int
    """Rows that a rewrite only carried over."""
    feed: tuple[str, ...]
    """Files of the change feed."""


def moves_of(
    adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action], info: Action
) -> Moves:
    """What a commit's actions say; those that only rearrange left out."""
    came, went = data_changes(adds), data_changes(removes)
    return Moves(
        came={unquote(each["path"]): _rows(each) for each in came},
        hidden_after={unquote(each["path"]): _hidden(each) for each in came},
        hidden_before={unquote(each["path"]): _hidden(each) for each in went},
        copied=_copied(info),
        feed=tuple(unquote(each["path"]) for each in feed),
    )


def changed_rows(commits: Iterable[Moves], known: Mapping[str, int | None]) -> int | None:
    """Rows that came and rows that went; None where the log does not say.

    Args:
        commits: In their order.
        known: By path, the rows of the files that were there before, as far as they are known.
    """
    rows, total = dict(known), 0
    for commit in commits:
        rows |= commit.came
        changed = _of_one(commit, rows)
        if changed is None:
            return None
        total += changed
    return total


def _of_one(commit: Moves, rows: Mapping[str, int | None]) -> int | None:
    came, went = commit.hidden_after, commit.hidden_before
    if any(rows.get(path) is None for path in {*came, *went}):
        return None
    # A file of which a vector took more rows is removed and added, and the others stay.
    marked = sum(abs(came[path] - went[path]) for path in came.keys() & went.keys())
    new = sum((rows[path] or 0) - came[path] for path in came.keys() - went.keys())
    old = sum((rows[path] or 0) - went[path] for path in went.keys() - came.keys())
    # A rewrite carries rows over, which its metrics may count or not; at the least, the numbers
    # differ. DELETE by delta-rs is a rewrite of which only rows go.
    return marked + max(abs(new - old), new + old - 2 * commit.copied)


def _rows(add: Action) -> int | None:
    return json.loads(add["stats"]).get("numRecords") if add.get("stats") else None


def _hidden(action: Action) -> int:
    return (action.get("deletionVector") or {}).get("cardinality", 0)


def _copied(info: Action) -> int:
    """Under the names that Spark and delta-rs give them."""
    metrics = metrics_of(info)
    names = ("numTargetRowsCopied", "numCopiedRows", "num_target_rows_copied", "num_copied_rows")
    return sum(int(metrics.get(name) or 0) for name in names)
