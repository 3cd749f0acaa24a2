"""Plain Spark: the user's own text over the rows that the tables have, compared by name.

Each row becomes JSON, in which a column has its name, -0.0 is not 0.0 and NaN is one value; the
copies of each are counted on both sides, by one statement for several queries. Rows that differ are
looked at again with the tolerance of `Lake.check` for sums of floats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from dagster_streamtables.compiler import View
from dagster_streamtables.runtime.checks.comparison import difference
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from qa.histories.oracle import AS_TEXT, OF_MAPS, lines, no_lines
from qa.spark_corpus.oracle import Held, Line, Oracle, reordered
from qa.spark_corpus.relations import Base, mentioned, renamed

PARTITIONS = (0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3)
"""In these numbers of partitions, each in another order, the inputs of a query are read again that
differs."""
_MODE = re.compile(r"\bmode\s*\(([^(),]*)\)", re.IGNORECASE)
_COPIES = "__copies"


class Plain(Oracle):
    name = "plain Spark"
    errors = (PySparkException,)

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.bases: dict[str, tuple[Base, pa.Table]] = {}

    def give(self, tables: Sequence[tuple[Base, pa.Table]]) -> None:
        for base, rows in tables:
            self.bases[base.name] = base, rows
            self._view(base.name, local(self.session, rows, base.schema))

    def _defined(self, view: View) -> bool:
        columns = f" ({', '.join(map(spark_name, view.columns))})" if view.columns else ""
        name = spark_name(flat(view.name))
        try:
            self.session.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW {name}{columns} AS {self.text(view.query)}"
            )
        except PySparkException:
            return False
        return True

    def text(self, sql: str) -> str:
        """The user's text; a name with a schema is that of a temporary view, which has none."""
        dotted = {name.lower(): flat(name) for name in mentioned(sql) if "." in name}
        return renamed(sql, dotted, alias=True) if dotted else sql

    def fails(self, text: str) -> str:
        try:
            arrow_rows(query(self.session, f"SELECT * FROM (\n{self.text(text)}\n)", {}))
        except PySparkException as error:
            return str(error)
        return ""

    def differences(self, held: Sequence[Held]) -> dict[str, list[Line] | Exception]:
        try:
            return {each.name: [] for each in held} | self._compared(held)
        except PySparkException as error:
            if len(held) == 1:
                return {held[0].name: error}
        half = len(held) // 2
        return self.differences(held[:half]) | self.differences(held[half:])

    def _compared(self, held: Sequence[Held]) -> dict[str, list[Line] | Exception]:
        parts: list[str] = []
        named: dict[str, DataFrame] = {}
        for each in held:
            line = OF_MAPS if "map<" in each.schema.simpleString() else "{}"
            parts.append(
                f"SELECT '{each.name}' AS root, -1L AS side, {line.format(AS_TEXT.format('*'))} "
                f"AS line FROM (\n{self.text(each.text)}\n)"
            )
            named[f"held_{each.name}"] = self._lines(each)
            parts.append(f"SELECT '{each.name}', side, {line.format('line')} FROM held_{each.name}")
        text = f"SELECT root, line, SUM(side) AS copies FROM ({' UNION ALL '.join(parts)}) "
        found = arrow_rows(query(self.session, text + "GROUP BY ALL HAVING copies <> 0", named))
        lines_of: dict[str, list[Line] | Exception] = {}
        for row in found.to_pylist():
            got = lines_of.setdefault(row["root"], [])
            assert isinstance(got, list)
            got.append(Line(row["line"], row["copies"]))
        return lines_of

    def _lines(self, held: Held) -> DataFrame:
        names = [each.name for each in held.schema.fields]
        if not held.rows.num_rows:
            return no_lines(self.session)
        return lines(self._rows(held), names, copies=held.copies or "1")

    def _rows(self, held: Held) -> DataFrame:
        extra = [StructField(held.copies, LongType())] if held.copies else []
        names = [*([held.copies] if held.copies else []), *held.schema.fieldNames()]
        schema = StructType([*extra, *held.schema.fields])
        return local(self.session, held.rows.select(names), schema)

    def is_rounding(self, held: Held) -> bool:
        """Whether the rows are equal but for the last digits of floats, or for the keys of maps.

        Spark's `to_json` writes a key that is a struct as it lies in memory: ``[1,2]`` or, from an
        UnsafeRow, ``[0,1,2]``.
        """
        floats = any(each.dataType.typeName() in ("double", "float") for each in held.schema.fields)
        if held.copies or not (floats or "map<struct<" in held.schema.simpleString()):
            return False
        expected = query(self.session, f"SELECT * FROM (\n{self.text(held.text)}\n)", {})
        expected = expected.toDF(*held.schema.fieldNames())
        found = difference(expected, self._rows(held), zeros=True)
        return arrow_rows(found.limit(1)).num_rows == 0

    def is_arbitrary(self, held: Held, views: Sequence[View]) -> bool:
        """Whether plain Spark has other rows when its tables are in another order, or when `mode`
        returns the least of the values that are equally frequent: any of them is right."""
        first = self._answer(held)
        least = _MODE.sub(r"mode(\1, true)", held.text)
        if least != held.text and self._answer(replace(held, text=least)) != first:
            return True
        try:
            for number, partitions in enumerate(PARTITIONS):
                self._reorder(Random(number), partitions)
                self.define(views)
                if self._answer(held) != first:
                    return True
        finally:
            self.give(list(self.bases.values()))
            self.define(views)
        return False

    def _answer(self, held: Held) -> list[tuple[str, int]]:
        text = f"SELECT {AS_TEXT.format('*')} AS line FROM (\n{self.text(held.text)}\n)"
        found = arrow_rows(
            query(self.session, f"SELECT line, COUNT(*) AS n FROM ({text}) GROUP BY line", {})
        )
        return sorted((row["line"], row["n"]) for row in found.to_pylist())

    def _reorder(self, random: Random, partitions: int) -> None:
        for base, rows in self.bases.values():
            rows = reordered(rows, random, backward=partitions == 0)
            found = local(self.session, rows, base.schema)
            self._view(base.name, found.repartition(partitions) if partitions else found)

    def _view(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(flat(name))

    def forget(self) -> None:
        for row in self.session.sql("SHOW VIEWS").collect():
            self.session.catalog.dropTempView(row["viewName"])
        self.bases.clear()


def flat(name: str) -> str:
    """The name of a temporary view for a table in a schema."""
    return name.replace(".", "__")


def local(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Rows of this process in Spark. Its client makes no DataFrame of nothing."""
    return session.createDataFrame(rows if rows.num_rows else [], schema)
