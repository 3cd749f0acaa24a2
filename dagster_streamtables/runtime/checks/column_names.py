"""Compare the columns of two relations by name. Rows are compared by name, so this comes first.

Letter case counts: a reader in Python asks for `Id`, and finds no `id`. So do the names of the
fields of a struct, in their order: Spark compares structs by place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.types import column_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True)
class ColumnDifference:
    """The columns that only one of two relations has."""

    missing: tuple[str, ...] = ()
    """Columns that the query returns and the table lacks."""
    unexpected: tuple[str, ...] = ()
    """Columns that the table has and the query does not return."""

    @classmethod
    def between(cls, expected: DataFrame, stored: Mapping[str, str]) -> ColumnDifference:
        """
        Args:
            expected: The rows of a query, with the names that Spark gives them.
            stored: The columns of a table, and their Spark types.
        """
        fields = ((each.name, column_type(each.jsonValue())) for each in expected.schema.fields)
        there, held = _named(fields), _named(stored.items())
        return cls(tuple((there - held).elements()), tuple((held - there).elements()))

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)

    def __str__(self) -> str:
        """
        >>> str(ColumnDifference(("Id", "pair<x, y>"), ("id",)))
        'the query returns the columns "Id", "pair<x, y>", and the table has "id" instead'
        >>> str(ColumnDifference(("a",))), str(ColumnDifference((), ("b",)))
        ('the table lacks the column "a"', 'the query returns no column "b"')
        """
        if self.missing and self.unexpected:
            there, held = _listed(self.missing), _quoted(self.unexpected)
            return f"the query returns the {there}, and the table has {held} instead"
        if self.missing:
            return f"the table lacks the {_listed(self.missing)}"
        return f"the query returns no {_listed(self.unexpected)}"


SAME_COLUMNS = ColumnDifference()


def _named(columns: Iterable[tuple[str, str]]) -> Counter[str]:
    """Column names, with the names of the fields inside."""
    return Counter(_with_fields(name, _NAME.findall(type_)) for name, type_ in columns)


def _with_fields(name: str, fields: list[str]) -> str:
    return f"{name}<{', '.join(fields)}>" if fields else name


def _listed(names: tuple[str, ...]) -> str:
    return f"column{'s' * (len(names) > 1)} {_quoted(names)}"


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)
