"""A fault for tests of the tests: two columns of one type stand under each other's names.

It is what a refresh left behind that took columns by place from a relation with another order of
columns. Rows that are compared by place are equal then, so each comparison of this folder has a
test that plants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from dagster_streamtables import Subscription
from dagster_streamtables.runtime.compute.spark_relations import OutputRows
from dagster_streamtables.runtime.storage import writer


def exchanged(columns: Iterable[tuple[str, Any]]) -> list[str]:
    """The names of columns, of which the first two of one type are exchanged, if there are two.

    Args:
        columns: Names and types. Names that begin with "_" are not of the query.
    """
    columns = list(columns)
    names = [name for name, _ in columns]
    own = [place for place, name in enumerate(names) if not name.startswith("_")]
    for one, other in combinations(own, 2):
        if columns[one][1] == columns[other][1]:
            names[one], names[other] = names[other], names[one]
            break
    return names


def swapped(rows: pa.Table) -> pa.Table:
    """The same columns, in the same order, with two values exchanged."""
    names = exchanged((field.name, field.type) for field in rows.schema)
    return rows.rename_columns(names).select(rows.column_names)


def swapped_in_spark(rows: DataFrame) -> DataFrame:
    return rows.toDF(*exchanged(rows.dtypes)).select(*(f"`{name}`" for name in rows.columns))


def swap_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let refreshes write rows with two columns exchanged."""
    for name in ("write", "replace", "change"):
        monkeypatch.setattr(writer, name, _writing_swapped(getattr(writer, name)))


def _writing_swapped(write: Callable[..., Any]) -> Callable[..., Any]:
    def writing(*arguments: Any) -> Any:
        return write(*(_rows(each) if isinstance(each, OutputRows) else each for each in arguments))

    return writing


def _rows(rows: OutputRows) -> OutputRows:
    local = None if rows.local is None else swapped(rows.local)
    return OutputRows(local, lambda: swapped_in_spark(rows.in_spark()))


def swap_what_is_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let subscriptions give out rows with two columns exchanged."""
    fetch = Subscription.fetch

    def fetching(self: Subscription, *arguments: Any, **options: Any) -> pa.Table:
        return swapped(fetch(self, *arguments, **options))

    monkeypatch.setattr(Subscription, "fetch", fetching)
