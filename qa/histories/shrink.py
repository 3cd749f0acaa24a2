"""The steps, and the roots, that a failure needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from qa.histories.history import Failure, History

Runs = Callable[[History], Failure | None]


def shrink(history: History, failure: Failure, runs: Runs, *, seconds: float) -> History:
    """The shortest history found that fails in the same way.

    Each step has a seed of its own, so what it does hardly changes when others are left out.
    """
    end = time.monotonic() + seconds
    small = replace(history, steps=history.steps[: failure.at + 1])
    small = _taken(small, replace(small, kinds=_alone(failure.roots)), failure, runs)
    again = True
    while again:
        again = False
        for at in range(len(small.steps) - 1, 0, -1):
            if time.monotonic() > end:
                return small
            fewer = replace(small, steps=small.steps[:at] + small.steps[at + 1 :])
            found = _taken(small, fewer, failure, runs)
            again |= found is not small
            small = found
    return small


def _taken(now: History, proposed: History, failure: Failure, runs: Runs) -> History:
    found = runs(proposed)
    same = found is not None and found.what[:24] == failure.what[:24]
    return proposed if same else now


def _alone(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The first of some kinds of roots, with the one that it reads."""
    return ("bag", "over-another") if roots[:1] == ("over-another",) else roots[:1]
