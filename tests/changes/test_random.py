"""Random histories: what changed, added up, is what plain reading finds at every timestamp."""

from __future__ import annotations

import math
import random
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import SparkSession

from changes.reading import contents, read
from changes.table import FEED, Table
from dagster_streamtables import Lake
from dagster_streamtables.errors import LostRelation

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), ("f", pa.float64())])
KEYS = st.sampled_from([None, 1, 2, 3])
VALUES = st.sampled_from([None, "", "a", "b", "é\n"])
FLOATS = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf])
ROWS = st.lists(st.tuples(KEYS, VALUES, FLOATS), min_size=1, max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("insert"), ROWS),
    st.tuples(st.just("insert"), ROWS),
    st.tuples(st.just("overwrite"), ROWS),
    st.tuples(st.just("merge"), ROWS),
    st.tuples(st.just("delete"), st.sampled_from(["k = 1", "v IS NULL", "f > 1", None])),
    st.tuples(st.just("update"), st.sampled_from(["k = 1", "v = 'a'", "f = 0", None])),
    st.tuples(st.just("restore"), st.integers(0, 9)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("add_column"), st.none()),
)


def take(t: Table, step: str, given: Any) -> None:
    if step in ("insert", "overwrite"):
        getattr(t, step)(*given)
    elif step == "merge":
        t.merge(*{row[0]: row for row in given}.values())
    elif step == "delete":
        t.delete(given)
    elif step == "update":
        t.update(given, v="'a'", f="f + 0.5")
    elif step == "restore":
        if given < t.version:
            t.restore(given)
    elif step == "add_column":
        if "extra" not in t.delta.to_pyarrow_table().column_names:
            t.add_column("extra", "integer")
    else:
        t.compact()


def plainly(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row whose values are equal if they are the same: NaN is, and the two zeros are two."""
    return tuple(map(_plainly, row))


def _plainly(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack("d", value))
    if isinstance(value, dict):
        return ("struct", *((name, _plainly(value[name])) for name in sorted(value)))
    if isinstance(value, list):
        return ("list", plainly(value))
    return value


def require_history(t: Table, rows: list[tuple[Any, ...]], columns: list[str], first: int) -> None:
    """The rows of all timestamps, in order, lead from version to version."""
    keys = [(row[0], plainly(row[2:])) for row in rows]
    assert len(keys) == len(set(keys)), "a row has several diffs in one timestamp"
    assert all(row[1] for row in rows)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    shown = [(*row[:2], *plainly(row[2:])) for row in rows]
    for version in range(first, t.version + 1):
        padded = t.delta_at(version)
        for name in {*columns} - {*padded.column_names}:
            padded = padded.append_column(name, pa.nulls(padded.num_rows))
        told = zip(*(padded.column(name).to_pylist() for name in columns), strict=True)
        assert contents(shown, version) == Counter(map(plainly, told)), version


def follows(
    steps: list[tuple[str, Any]], *, feed: bool, first: int, schema: pa.Schema = SCHEMA
) -> None:
    with tempfile.TemporaryDirectory() as root:
        lake = Lake(root)
        t = Table.new(lake.location("t"), schema, FEED if feed else None)
        for step, given in steps:
            take(t, step, _without_nan(given) if feed else given)
        first = min(first, t.version)
        columns = sorted(t.names(first))
        there = [set(t.delta_at(v).column_names) for v in range(first, t.version + 1)]
        if not set(columns) <= set.intersection(*there):  # RESTORE dropped one
            with pytest.raises(LostRelation, match='"extra" of "t" was dropped'):
                read(lake, "t", as_of=first)
            return
        rows = read(lake, "t", as_of=first, up_to=t.version + 1)
        require_history(t, rows, columns, first)


def _without_nan(rows: Any) -> Any:
    """delta-rs takes a file of NaN and 1.5 for one of 1.5 alone, by its statistics, and writes that
    into the feed of a DELETE or an UPDATE."""
    if not isinstance(rows, list):
        return rows
    return [(*row[:2], None if row[2] != row[2] else row[2]) for row in rows]


@given(st.lists(STEPS, min_size=1, max_size=9), st.booleans(), st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_a_stored_table(steps: list[tuple[str, Any]], feed: bool, first: int) -> None:
    follows(steps, feed=feed, first=first)


@pytest.mark.long
@given(st.lists(STEPS, min_size=1, max_size=20), st.booleans(), st.integers(0, 9))
@settings(max_examples=500, deadline=None)
def test_a_stored_table_often(steps: list[tuple[str, Any]], feed: bool, first: int) -> None:
    follows(steps, feed=feed, first=first)


COMMITS = 6
NESTED = [
    "(1, named_struct('x', -0.0D, 'y', array(1, NULL)))",
    "(1, named_struct('x', 0.0D, 'y', array(1, NULL)))",
    "(2, named_struct('x', double('NaN'), 'y', array()))",
    "(3, NULL)",
    "(NULL, named_struct('x', NULL, 'y', NULL))",
]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, *(n for n in range(2, 12))])
@pytest.mark.parametrize("vectors", [True, False])
def test_nested_columns(spark: SparkSession, tmp_path: Path, seed: int, vectors: bool) -> None:
    """Tables that Spark writes, with deletion vectors."""
    chance = random.Random(seed)
    lake = Lake(tmp_path, spark=spark)
    place = f"delta.`{lake.location('t')}`"
    spark.sql(
        f"CREATE TABLE {place} (k INT, s STRUCT<x: DOUBLE, y: ARRAY<INT>>) USING delta "
        f"TBLPROPERTIES (delta.enableDeletionVectors = {vectors}, "
        f"delta.enableChangeDataFeed = {chance.random() < 0.5})"
    )
    for n in range(COMMITS):
        rows = ", ".join(chance.choices(NESTED, k=3))
        way = chance.choice(["INTO", "INTO", "OVERWRITE", "delete", "update", "restore"])
        if way in ("INTO", "OVERWRITE") or n == 0:
            spark.sql(f"INSERT {way if way.isupper() else 'INTO'} {place} VALUES {rows}")
        elif way == "delete":
            spark.sql(f"DELETE FROM {place} WHERE k = {chance.randint(1, 3)}")
        elif way == "update":
            spark.sql(f"UPDATE {place} SET k = k + 1 WHERE s.x = 0 OR k = 3")
        else:
            # A statement that finds no row makes no version.
            newest = lake.version("t") or 0
            spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {chance.randint(0, newest)}")

    last = lake.version("t") or 0
    rows = read(lake, "t", as_of=0, up_to=last + 1)
    shown = [(*row[:2], *plainly(row[2:])) for row in rows]
    for version in range(last + 1):
        told = spark.sql(f"SELECT * FROM {place} VERSION AS OF {version}").toArrow().to_pylist()
        expected = Counter(plainly((row["k"], row["s"])) for row in told)
        assert contents(shown, version) == expected, version
