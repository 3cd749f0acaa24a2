"""The folder that a history is about, and both engines' hands on it."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from dagster_streamtables.runtime.spark.settings import settings_for_now
from qa.histories.rows import Field, some_rows

INT96, MICROS = "INT96", "TIMESTAMP_MICROS"
_REBASED = ("datetime", "int96")


class Refused(Exception):
    """A step that makes no sense where it stands: it does nothing."""


class World:
    """The source ``t``, which everything happens to, the source ``u``, and room beside them."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.t, self.u = root / "public/t", root / "public/u"
        self.aside = root / "aside"
        self.aside.mkdir(parents=True)
        self.spark_writes = INT96
        self.old_calendar = False
        """Whether Spark writes days before 1582 in the calendar of that time."""
        self.read: dict[str, tuple[tuple[str, int], DataFrame]] = {}
        """Of each source, the version that was read last, and its rows."""
        self.moved()

    # --- what is there

    def table(self) -> DeltaTable:
        return DeltaTable(str(self.t))

    @property
    def fields(self) -> Sequence[Field]:
        return json.loads(self.table().schema().to_json())["fields"]

    @property
    def names(self) -> list[str]:
        return [field["name"] for field in self.fields]

    @property
    def settings(self) -> Mapping[str, str]:
        return {k: v for k, v in self.table().metadata().configuration.items() if v is not None}

    @property
    def partitions(self) -> list[str]:
        return list(self.table().metadata().partition_columns)

    @property
    def version(self) -> int:
        return self.table().version()

    @property
    def features(self) -> set[str]:
        protocol = self.table().protocol()
        return {*(protocol.reader_features or []), *(protocol.writer_features or [])}

    # --- what can be done

    @property
    def place(self) -> str:
        return f"delta.`{self.path}`"

    def sql(self, text: str, **settings: str) -> None:
        """Run a statement on Spark; ``{t}`` in it is the table."""
        named = {name.replace("__", "."): value for name, value in settings.items()}
        named["spark.sql.parquet.outputTimestampType"] = self.spark_writes
        mode = "LEGACY" if self.old_calendar else "CORRECTED"
        named |= {f"spark.sql.parquet.{each}RebaseModeInWrite": mode for each in _REBASED}
        with settings_for_now(self.spark, named):
            self.spark.sql(text.replace("{t}", self.place))

    @contextmanager
    def view(self, rows: pa.Table) -> Iterator[str]:
        """Local rows under a name that a statement can use."""
        name = f"rows_{uuid.uuid4().hex}"
        schema = from_arrow_schema(rows.schema)
        self.spark.createDataFrame(rows, schema).createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def rows(self, random: Random, count: int | None = None) -> pa.Table:
        """Rows for the table as it is now, without the columns that it makes itself."""
        count = random.randrange(1, 5) if count is None else count
        return some_rows(random, [f for f in self.fields if not _made(f)], count)

    def append(self, rows: pa.Table, **more: Any) -> None:
        write_deltalake(str(self.t), rows, mode="append", **more)

    def moved(self) -> None:
        """The folder is another one now, behind Delta's back.

        Spark keeps logs by path, and would go on with the one that it holds in memory. So the
        table has another path in each of its lives: a link to the folder.
        """
        self.path = self.aside / f"life_{uuid.uuid4().hex[:8]}"
        self.path.symlink_to(self.t)

    def clear(self) -> None:
        """Empty the folder, in which another table can be made then."""
        shutil.rmtree(self.t, ignore_errors=True)
        self.t.mkdir(parents=True)
        self.moved()


def _made(field: Field) -> bool:
    """Whether the table makes the column's values: generated, and identity."""
    return any(key.startswith(("delta.generation", "delta.identity")) for key in field["metadata"])


def column_list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name.replace('`', '``')}`" for name in names)
