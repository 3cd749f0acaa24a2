"""How many rows a window changed, by its commits: an estimate that is never too low."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import Action, data_changes, metrics_of


@dataclass(frozen=True)
class Moves:
    """The files of one commit whose rows changed."""

    came: Mapping[str, int | None]
    """Path → rows of an added file, including those under its deletion vector."""
    hidden_after: Mapping[str, int]
    """Path → rows under the deletion vector of an added file."""
    hidden_before: Mapping[str, int]
    """Path → rows under the deletion vector of a removed file."""
    copied: int
    """Rows that a rewrite only carried over."""
    feed: tuple[str, ...]
    """Files of the Change Data Feed."""


def moves_of(
    adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action], info: Action
) -> Moves:
    """The changed files of a commit's actions, without those that only rearrange."""
    came, went = data_changes(adds), data_changes(removes)
    return Moves(
        came={unquote(each["path"]): _rows(each) for each in came},
        hidden_after={unquote(each["path"]): _hidden(each) for each in came},
        hidden_before={unquote(each["path"]): _hidden(each) for each in went},
        copied=_copied(info),
        feed=tuple(unquote(each["path"]) for each in feed),
    )


def changed_rows(commits: Iterable[Moves], known: Mapping[str, int | None]) -> int | None:
    """The number of inserted and deleted rows; None if the log does not have it.

    Args:
        commits: In their order.
        known: Path → rows of the files before the window, as far as they are known.
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
    # A file whose vector grew is removed and added; its other rows stay.
    marked = sum(abs(came[path] - went[path]) for path in came.keys() & went.keys())
    new = sum((rows[path] or 0) - came[path] for path in came.keys() - went.keys())
    old = sum((rows[path] or 0) - went[path] for path in went.keys() - came.keys())
    # A rewrite carries rows over, which its metrics may or may not count; the minimum is the
    # difference of the numbers. DELETE by delta-rs is a rewrite that only deletes rows.
    return marked + max(abs(new - old), new + old - 2 * commit.copied)


def _rows(add: Action) -> int | None:
    return json.loads(add["stats"]).get("numRecords") if add.get("stats") else None


def _hidden(action: Action) -> int:
    return (action.get("deletionVector") or {}).get("cardinality", 0)


def _copied(info: Action) -> int:
    """Carried-over rows, under the names of Spark's and delta-rs's metrics."""
    metrics = metrics_of(info)
    names = ("numTargetRowsCopied", "numCopiedRows", "num_target_rows_copied", "num_copied_rows")
    return sum(int(metrics.get(name) or 0) for name in names)
