"""Envelopes: what happened to each key in a timestamp, in place of rows that came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from dagster_streamtables.changes.output.names import column_of, is_name, unknown_column
from dagster_streamtables.errors import RefusedOperation


class Envelope:
    """A row for each key of which something changed, instead of a row for each changed row.

    The rows of a key in a timestamp are one of four cases: one came, one went, one went and another
    came, or anything else, which violates the key.
    """

    inserted: ClassVar[str]
    """What a row that came under a key of which none went is called."""
    sides: ClassVar[tuple[tuple[str, str], ...]]
    """The value columns: a prefix, and whether they are those `before` or `after` the change."""

    key: tuple[str, ...]

    def __init__(self, *key: str | Iterable[str]) -> None:
        """Args: key: The columns of the key, each by its name or all in a list."""
        named = ((each,) if isinstance(each, str) else each for each in key)
        self.key = tuple(column for columns in named for column in columns)
        _check_key(self.key)

    @property
    def states(self) -> tuple[str, str, str, str]:
        """What the four cases are called: came, replaced, went, anything else."""
        return self.inserted, "upsert", "delete", "key_violation"

    def key_in(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of the key, as the relation writes them."""
        key = tuple(_key_column(name, columns) for name in self.key)
        _check_key(key)
        return key

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.key == self.key  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.key))})"


class Upsert(Envelope):
    """For each key that changed, the row that it has now: ``Upsert("id")``.

    The state is ``upsert`` with the values, ``delete`` with NULLs, or ``key_violation`` with NULLs
    if more than one row of the key came or went at once.
    """

    inserted = "upsert"
    sides = (("", "after"),)


class Debezium(Envelope):
    """For each key that changed, its row before and after: ``Debezium("id")``.

    The state is ``insert``, ``upsert``, ``delete``, or ``key_violation`` if more than one row of
    the key came or went at once. Value columns are named ``before_…`` and ``after_…``.
    """

    inserted = "insert"
    sides = (("before_", "before"), ("after_", "after"))


def _check_key(key: tuple[str, ...]) -> None:
    if not key:
        raise RefusedOperation(
            "the key of an envelope has no column",
            why="rows that belong together are found by their key",
            fix='name one or more columns: Upsert("id")',
        )
    column, times = Counter(key).most_common(1)[0]
    if times > 1:
        raise RefusedOperation(
            f'column "{column}" is in the key more than once', fix="name each column once"
        )


def _key_column(name: str, columns: Sequence[str]) -> str:
    column = column_of(name, columns)
    if column:
        return column
    if not is_name(name):
        raise RefusedOperation(
            f'invalid key: "{name}" is not a column',
            why="a key is made of columns, not of expressions",
            fix="compute it as a column, in a SELECT, and name that",
        )
    raise unknown_column(name, columns)
