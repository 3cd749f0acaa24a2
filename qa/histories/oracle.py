"""Plain Spark runs the queries as they are written, over the versions that were refreshed to.

One statement for all stream tables of a history: each row as text, in which -0.0 is not 0.0 and
NaN is one value, counted on both sides. What the product holds in memory, and what Spark holds of
its statements, has no part in it: the table is read by a path of its own, and of the stream tables
the files that their logs name. Spark reads a version of a source once, for all queries over it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from qa.histories.roots import Root
from qa.histories.world import World, column_list

AS_TEXT = (
    "to_json(struct({}), map('ignoreNullFields', 'false', "
    "'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"
)
"""The row of some columns as text."""
OF_MAPS = "COALESCE(TO_JSON(TRY_PARSE_JSON({0})), {0})"
"""Maps are equal in any order of their keys; some of them are no JSON that Spark takes."""


@dataclass(frozen=True)
class Wrong:
    """A row that one side has more often than the other."""

    root: str
    row: str
    copies: int
    """More than the query gives, or, below 0, fewer."""

    def __str__(self) -> str:
        word = "unexpected" if self.copies > 0 else "missing"
        return f"{self.root}: {word} {abs(self.copies)} x {self.row}"


@dataclass(frozen=True)
class Held:
    """What is to be the answer of a query."""

    root: str
    query: str
    """As its author wrote it."""
    lines: DataFrame
    """``line``, a row as text, and ``side``, its copies."""


def lines(rows: DataFrame, columns: Sequence[str], copies: str = "1") -> DataFrame:
    """Rows as text, with their number of copies."""
    text = AS_TEXT.format(column_list(columns))
    return rows.selectExpr(f"CAST({copies} AS BIGINT) AS side", f"{text} AS line")


def no_lines(spark: SparkSession) -> DataFrame:
    """For no rows: Spark's client makes no DataFrame of nothing."""
    return spark.sql("SELECT 0L AS side, '' AS line WHERE false")


def differences(world: World, held: Sequence[Held], versions: Mapping[str, int]) -> list[Wrong]:
    """How the rows that are held differ from the answers of their queries at these versions."""
    named: dict[str, DataFrame] = {
        name: _read_once(world, name, path, versions[name])
        for name, path in (("t", world.path), ("u", world.u))
        if name in versions
    }
    if "bag" in versions:
        named["bag"] = stored_rows(world, "bag", versions["bag"])
    parts: list[str] = []
    for each in held:
        line = OF_MAPS if each.root == "maps" else "{}"
        text = line.format(AS_TEXT.format("*"))
        parts.append(f"SELECT '{each.root}' AS root, -1 AS side, {text} AS line "
                     f"FROM ({each.query})")  # fmt: skip
        named[f"held_{each.root}"] = each.lines
        parts.append(f"SELECT '{each.root}', side, {line.format('line')} FROM held_{each.root}")
    text = " UNION ALL ".join(parts)
    text = f"SELECT root, line, SUM(side) AS copies FROM ({text}) GROUP BY ALL HAVING copies <> 0"
    found = arrow_rows(query(world.spark, text, named))
    return [Wrong(r["root"], r["line"], r["copies"]) for r in found.to_pylist()]


_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""What Spark says of a CHAR column beside its type. It compares such columns in its own way."""


def _read_once(world: World, name: str, path: Path, version: int) -> DataFrame:
    """The rows of a source as plain Spark reads them, by one scan for all queries and steps.

    A scan of a Delta table is most of what a statement over some rows takes.
    """
    seen = str(path), version
    if name not in world.read or world.read[name][0] != seen:
        rows = _source(world.spark, path, version)
        if name == "t" and _PADDED in world.table().schema().to_json():
            return rows
        here = arrow_rows(rows)
        # Spark's client makes no DataFrame of nothing, and without a schema forgets TIMESTAMP_NTZ.
        again = world.spark.createDataFrame(here, rows.schema) if here.num_rows else rows
        world.read[name] = seen, again
    return world.read[name][1]


def runs(world: World, root: Root) -> bool:
    """Whether plain Spark takes the query, over the tables as they are, if they are all there."""
    named = {"t": _source(world.spark, world.path, None), "u": _source(world.spark, world.u, None)}
    if "bag" in root.table.query:
        if not (world.root / "public/bag/_delta_log").is_dir():
            return False
        named["bag"] = stored_rows(world, "bag")
    try:
        arrow_rows(query(world.spark, root.table.query, named))
    except Exception:
        return False
    return True


def _source(spark: SparkSession, path: Path, version: int | None) -> DataFrame:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(str(path))


def stored_rows(world: World, name: str, version: int | None = None) -> DataFrame:
    """The visible rows of a stream table, at a version or at its newest."""
    files, schema = live(world.root / "public" / name, version)
    kind = StructType.fromJson(schema)
    reader = world.spark.read.schema(kind)
    rows = reader.parquet(*files) if files else world.spark.createDataFrame([], kind)
    seen = [f["name"] for f in schema["fields"] if not f["name"].startswith("__st_")]
    return rows.select(*[f"`{name.replace('`', '``')}`" for name in seen])


def live(folder: Path, until: int | None = None) -> tuple[list[str], dict[str, Any]]:
    """The data files of a table that only the product writes, and its schema."""
    files: set[str] = set()
    schema: dict[str, Any] = {}
    for path in sorted((folder / "_delta_log").glob("*[0-9].json")):
        if until is not None and int(path.name[:20]) > until:
            break
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            files.discard(action.get("remove", {}).get("path"))
            if "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
        files |= {action["add"]["path"] for action in actions if "add" in action}
    return [f"{folder}/{unquote(path)}" for path in sorted(files)], schema
