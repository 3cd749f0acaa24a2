"""Every committed version of a stream table against its query at the frontier that it names.

Of the product, only the form of its metadata is used. What a table held at a version is what its
log says: the rows of its files, over which plain Spark runs the queries. Versions are compared by
the dozen, in one statement.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from dagster_streamtables.runtime.compute.spark_relations import in_statement
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from qa.histories.oracle import live
from qa.histories.rows import arrow_schema
from qa.races.lake import TABLES, place

_AT_ONCE = 8
_QUERIES = {table.name: table.query for table in TABLES}


@dataclass(frozen=True)
class Committed:
    """A version of a stream table, and what it says of itself."""

    table: str
    version: int
    sequence: int
    frontier: Mapping[str, int]


def committed(root: Path, name: str) -> Iterator[Committed]:
    """The versions of a table that refreshes committed, in order."""
    for path in sorted((place(root, name) / "_delta_log").glob("*[0-9].json")):
        for line in path.read_text().splitlines():
            said = json.loads(line).get("commitInfo", {}).get("userMetadata")
            if said and "sequence" in json.loads(said):
                state = json.loads(said)
                frontier = {source: seen["version"] for source, seen in state["sources"].items()}
                yield Committed(name, int(path.name[:20]), state["sequence"], frontier)


def versions(root: Path) -> int:
    """How many there are, of all tables."""
    return sum(
        len(list((place(root, name) / "_delta_log").glob("*[0-9].json"))) for name in _QUERIES
    )


def wrong(spark: SparkSession, root: Path) -> tuple[int, list[str]]:
    """How many versions were compared, and what is wrong with some."""
    found: list[str] = []
    every: list[Committed] = []
    for name in _QUERIES:
        own = list(committed(root, name))
        found += _out_of_order(own)
        every += own
    for at in range(0, len(every), _AT_ONCE):
        found += _differing(spark, root, every[at : at + _AT_ONCE])
    return len(every), found


def _out_of_order(own: list[Committed]) -> Iterator[str]:
    """A refresh builds on the one before it, and goes on from there."""
    for before, after in itertools.pairwise(own):
        who = f"{after.table} version {after.version}"
        if after.sequence != before.sequence + 1:
            yield f"{who}: sequence {after.sequence} follows {before.sequence}"
        for name, version in after.frontier.items():
            if version < before.frontier.get(name, 0):
                yield f"{who}: {name} goes back to {version}"


def _differing(spark: SparkSession, root: Path, some: Iterable[Committed]) -> list[str]:
    named: dict[str, DataFrame] = {}
    parts: list[str] = []
    for number, each in enumerate(some):
        sources = ", ".join(
            f"{name} AS (SELECT * FROM {_held(spark, root, name, at, named)})"
            for name, at in each.frontier.items()
        )
        text = "to_json(struct(*), map('ignoreNullFields', 'false'))"
        held = _held(spark, root, each.table, each.version, named)
        read = ", ".join(f"{name} {at}" for name, at in each.frontier.items())
        title = f"'{number} {each.table} version {each.version} of {read}'"
        parts.append(
            f"SELECT {title} AS who, -1 AS side, {text} AS line "
            f"FROM (WITH {sources} {_QUERIES[each.table]})"
        )
        parts.append(f"SELECT {title}, 1, {text} FROM {held}")
    text = " UNION ALL ".join(parts)
    text = f"SELECT who, line, SUM(side) AS n FROM ({text}) GROUP BY ALL HAVING n <> 0 ORDER BY who"
    rows = arrow_rows(query(spark, text, named)).to_pylist()
    return [f"{row['who']}: {row['n']:+d} x {row['line']}" for row in rows]


def _held(spark: SparkSession, root: Path, name: str, version: int, named: dict[str, Any]) -> str:
    """The name of the rows of a table at a version."""
    view = f"{name}_{version}"
    if view not in named:
        files, schema = live(place(root, name), version)
        seen = [f for f in schema["fields"] if not f["name"].startswith("__st_")]
        kinds = arrow_schema(seen)
        parts = [_rows(path).select(kinds.names).cast(kinds) for path in files]
        # Versions may be empty, of which Spark makes no relation by itself.
        named[view] = in_statement(spark, pa.concat_tables([kinds.empty_table(), *parts]))
    return view


@lru_cache(maxsize=20_000)
def _rows(path: str) -> pa.Table:
    """A data file, which many versions have. Of numbers and texts, all readers see the same."""
    return pq.ParquetFile(path).read()
