"""What answers beside the product: the text of the user over the same rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from pyspark.sql.types import StructType

from dagster_streamtables.compiler import View
from qa.spark_corpus.relations import Base


@dataclass(frozen=True)
class Held:
    """What should be the rows of a query."""

    name: str
    text: str
    """As its author wrote it."""
    schema: StructType
    """The columns that the oracle says."""
    rows: pa.Table
    copies: str | None = None
    """The column with the number of copies; None if each row counts once."""


@dataclass(frozen=True)
class Line:
    """A row that one side has more often than the other."""

    text: str
    copies: int
    """More than the oracle has, or, below 0, fewer."""

    def __str__(self) -> str:
        return f"{'unexpected' if self.copies > 0 else 'missing'} {abs(self.copies)} x {self.text}"


class Oracle(ABC):
    name: str
    errors: tuple[type[Exception], ...]
    """What it raises against a text."""

    @abstractmethod
    def give(self, tables: Sequence[tuple[Base, pa.Table]]) -> None:
        """The rows of tables, from now on."""

    def define(self, views: Sequence[View]) -> None:
        """The views of the user, after the tables and views that they read."""
        todo = list(views)
        for _ in views:
            todo = [each for each in todo if not self._defined(each)]

    @abstractmethod
    def _defined(self, view: View) -> bool:
        """Whether a view can be defined now, and is."""

    @abstractmethod
    def fails(self, text: str) -> str:
        """What it says against a text; nothing if it runs."""

    @abstractmethod
    def differences(self, held: Sequence[Held]) -> dict[str, list[Line] | Exception]:
        """For each query the rows that one side has more often, or why it was not run."""

    @abstractmethod
    def is_rounding(self, held: Held) -> bool:
        """Whether the rows are equal but for the last digits of floats."""

    @abstractmethod
    def is_arbitrary(self, held: Held, views: Sequence[View]) -> bool:
        """Whether it has other rows when its tables are in another order."""

    @abstractmethod
    def forget(self) -> None:
        """Drop all tables and views."""


def reordered(rows: pa.Table, random: Random, *, backward: bool) -> pa.Table:
    """The rows in another order: the opposite one, or any."""
    order = list(range(rows.num_rows))
    order.reverse() if backward else random.shuffle(order)
    return rows.take(pa.array(order, pa.int64()))
