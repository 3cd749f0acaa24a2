"""What a step is, and the list of them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from qa.histories.world import World

Run = Callable[[World, Random], None]


@dataclass(frozen=True)
class Kind:
    """Something that can happen to a table."""

    name: str
    run: Run
    """Does it. Whatever it raises means that an engine refused; the table is as it was."""
    weight: float


KINDS: dict[str, Kind] = {}
CREATIONS: dict[str, Kind] = {}


def step(weight: float = 1) -> Callable[[Run], Run]:
    """A step, named like its function; `weight` is how often it comes among the others."""
    return _listed(KINDS, weight)


def statement(name: str, weight: float, *texts: str) -> None:
    """A step that runs a statement on Spark, one of several at random."""
    KINDS[name] = Kind(name, lambda world, random: world.sql(random.choice(texts)), weight)


def creation(weight: float = 1) -> Callable[[Run], Run]:
    """A way in which the table comes to be."""
    return _listed(CREATIONS, weight)


def _listed(kinds: dict[str, Kind], weight: float) -> Callable[[Run], Run]:
    def listed(run: Run) -> Run:
        name = run.__name__.replace("_", "-")
        kinds[name] = Kind(name, run, weight)
        return run

    return listed
