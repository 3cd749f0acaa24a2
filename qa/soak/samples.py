"""What a long run is like, minute by minute: samples are dataclasses of numbers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDTH = 10


def show_names(kind: Any, console: Console) -> None:
    """The names of a sample's numbers, over its columns."""
    names = (field.name[:_WIDTH] for field in fields(kind))
    console.print("  ".join(f"{name:>{_WIDTH}}" for name in names), soft_wrap=True)


def show(sample: Any, console: Console) -> None:
    told = ("-" if each is None else f"{each:,.1f}".removesuffix(".0") for each in astuple(sample))
    console.print("  ".join(f"{value:>{_WIDTH}}" for value in told), soft_wrap=True)


def summary(kind: Any, samples: Sequence[Any]) -> Table:
    """The second quarter beside the last: what grows from one to the other goes on growing."""
    quarter = max(1, len(samples) // 4)
    grid = Table("", "second quarter", "last quarter")
    for field in fields(kind):
        row = [field.name]
        for part in (samples[quarter : 2 * quarter], samples[-quarter:]):
            values = [value for each in part if (value := getattr(each, field.name)) is not None]
            row.append(f"{statistics.mean(values):,.1f}" if values else "-")
        grid.add_row(*row)
    return grid
