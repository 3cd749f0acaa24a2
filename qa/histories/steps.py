"""All steps, and which of them a history takes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from qa.histories import creating, features, folders, layout, schema, writing
from qa.histories.kinds import CREATIONS, KINDS

MODULES = (creating, features, folders, layout, schema, writing)
"""Importing them lists their steps."""


@dataclass(frozen=True)
class Step:
    """Something that happens, with the seed of its own choices: it is the same wherever it
    stands."""

    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}"

    @classmethod
    def read(cls, text: str) -> Step:
        kind, _, seed = text.strip().partition(":")
        return cls(kind, int(seed))


def some_steps(random: Random, count: int) -> tuple[Step, ...]:
    """A way for the table to be made, and what happens to it then.

    Each history knows only a part of all kinds, so those that it knows meet often.
    """
    part = random.choice((0.25, 0.5, 1))
    known = [name for name in KINDS if random.random() < part]
    known += [name for name in ("insert-rows", "delta-rs-append") if name not in known]
    weights = [KINDS[name].weight for name in known]
    chosen = random.choices(known, weights, k=count)
    made = random.choices(list(CREATIONS), [each.weight for each in CREATIONS.values()])
    return tuple(Step(kind, random.randrange(10**6)) for kind in (*made, *chosen))
