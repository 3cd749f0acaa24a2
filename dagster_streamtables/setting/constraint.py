"""Constraints and other marks in the annotation of a setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True)
class Range:
    """An interval of numbers, or of timedeltas, in seconds."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is excluded."""

    def __contains__(self, value: Any) -> bool:
        number = value.total_seconds() if isinstance(value, timedelta) else value
        return (self.low < number if self.above else self.low <= number) and number <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        return f"{'above' if self.above else 'from'} {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Where:
    """Values with a property that a type cannot express."""

    holds: Callable[[Any], bool]
    words: str

    def __contains__(self, value: Any) -> bool:
        return self.holds(value)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Normalized:
    """Values that a function normalizes; it raises for invalid ones."""

    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Shown:
    """How editors and the documentation show a setting."""

    examples: tuple[Any, ...] = ()
    default: str = ""
    """The default in words, if its value does not explain itself."""


class _Internal:
    """The mark of a field that the package fills in: it is not a setting in files or YAML."""


FILLED = Where(lambda value: bool(str(value).strip()), "not empty")
INTERNAL = _Internal()
Bound = Range | Where
