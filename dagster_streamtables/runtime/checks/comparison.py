"""Does a stream table equal its query? Plain Spark runs the user's own text to find out.

Both sides are read at the table's frontier and compared as multisets, in both directions, by the
names of their columns: those that Spark gives the query, and those that the table stores. Sums of
floats may differ in their last digits, since the order of additions differs; rows that differ only
there, and by no more than `TOLERANCE`, are equal.

-0.0 and 0.0 differ, as they do to a reader, if the query only passes values on. If it groups or
orders, Spark itself returns either: MIN and MAX return the first that they find. Then the two are
equal, as in SQL.

A `Sample` makes the comparison cheaper. A hash of some columns and a seed decides whether a row
belongs to it, so both sides agree, and another seed selects other rows. In an aggregation those
columns are the keys: Spark pushes a condition on keys below the aggregate, so it drops the other
rows before it joins or groups them.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from sqlglot import exp

from dagster_streamtables.amounts import count
from dagster_streamtables.compiler import Text, comparable_columns, with_one_answer, zero_marks
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.runtime.compute.full_query import rows_of
from dagster_streamtables.runtime.compute.netting import add_weight, net_rows
from dagster_streamtables.runtime.compute.spark_relations import Relations
from dagster_streamtables.runtime.delta.arrow import pa, python_rows
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableLog
from dagster_streamtables.runtime.delta.key_lookup import read_stored_rows
from dagster_streamtables.runtime.delta.table_schema import column_type, spark_name, types_of
from dagster_streamtables.runtime.model.definition import compile_table, visible_types
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_state import TableWithState
from dagster_streamtables.runtime.spark.connect import arrow_rows
from dagster_streamtables.runtime.spark.session import choose_codegen
from dagster_streamtables.setting import Range

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
        """Compare the rows of a query, with Spark's names, and the types of stored columns."""
        fields = ((each.name, column_type(each.jsonValue())) for each in expected.schema.fields)
        there, held = _count_names(fields), _count_names(stored.items())
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
            there, held = _list_columns(self.missing), _quote_names(self.unexpected)
            return f"the query returns the {there}, and the table has {held} instead"
        if self.missing:
            return f"the table lacks the {_list_columns(self.missing)}"
        return f"the query returns no {_list_columns(self.unexpected)}"


SAME_COLUMNS = ColumnDifference()


def _count_names(columns: Iterable[tuple[str, str]]) -> Counter[str]:
    """Column names, with the names of the fields inside."""
    fields = ((name, ", ".join(_NAME.findall(type_))) for name, type_ in columns)
    return Counter(f"{name}<{inside}>" if inside else name for name, inside in fields)


def _list_columns(names: tuple[str, ...]) -> str:
    return f"column{'s' * (len(names) > 1)} {_quote_names(names)}"


def _quote_names(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


TOLERANCE = 1e-9
"""Relative difference up to which two floats are equal."""
SMALL = 100_000
"""Tables with up to this many rows are first compared in this process."""
SAMPLE = 20
"""Number of differing rows that a comparison shows."""


@dataclass(frozen=True)
class Comparison:
    """A stream table against its query at the table's frontier."""

    table: str
    equal: bool
    version: int
    """The Delta version of the table that was compared."""
    frontier: Mapping[str, int]
    missing: int
    """Rows that the query returns and the table lacks, counting copies."""
    unexpected: int
    """Rows that the table has and the query does not return, counting copies."""
    sample: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Some of them, with ``__difference`` (``missing`` or ``unexpected``) and ``__copies``."""
    seconds: float = 0.0
    part: SampledRows | None = None
    """Which rows were compared; None for all of them."""
    functions: tuple[str, ...] = ()
    """The functions of the author's own that the query calls. A result that differs from call to
    call makes such differences."""
    columns: ColumnDifference = SAME_COLUMNS
    """The columns that only one side has. If there are any, no rows are compared."""

    def __str__(self) -> str:
        """
        >>> print(Comparison("mart.revenue", True, 4, {}, 0, 0))
        mart.revenue: equal to its query
        >>> print(Comparison("mart.revenue", False, 4, {}, 1, 0, [{"region": "EU"}]))
        mart.revenue: 1 row missing, 0 unexpected; for example {'region': 'EU'}
        >>> apart = ColumnDifference(("Region",), ("region",))
        >>> print(Comparison("mart.revenue", False, 4, {}, 0, 0, columns=apart))
        mart.revenue: the query returns the column "Region", and the table has "region" instead
        """
        if self.equal:
            return f"{self.table}: equal to its query"
        if self.columns:
            return f"{self.table}: {self.columns}"
        said = f"{self.table}: {count(self.missing, 'row')} missing, {self.unexpected:,} unexpected"
        return said + (f"; for example {self.sample[0]}" if self.sample else "")


def compare(
    table: StreamTable,
    stored: TableWithState,
    snapshots: Mapping[str, Snapshot],
    relations: Relations,
    part: SampledRows | None = None,
) -> Comparison:
    """Compare a stored table, or a part of it, with the user's own text over the sources at its
    frontier, `snapshots`."""
    begin = time.perf_counter()
    columns = {name: seen.columns for name, seen in stored.state.sources.items()}
    text = with_one_answer(table.text(columns), columns)
    now = stored.state.now or datetime.now(UTC).isoformat()
    choose_codegen(relations.spark, None)  # not as the refresh ran, which is to be checked
    kinds = visible_types(stored.query_columns)
    rows = rows_of(text, snapshots, now, relations, limit=SMALL, recursion=table.recursion)
    columns_apart = ColumnDifference.between(rows, kinds)
    if columns_apart:
        counts, sample = {}, []
    else:
        counts, sample = _rows_apart(rows, stored.log, kinds, relations, part, text)
    return Comparison(
        table=table.name,
        equal=not (counts or columns_apart),
        version=stored.log.version,
        frontier=stored.state.frontier,
        missing=counts.get("missing", 0),
        unexpected=counts.get("unexpected", 0),
        sample=sample,
        seconds=time.perf_counter() - begin,
        part=part,
        functions=tuple(each.name for each in table.called_functions),
        columns=columns_apart,
    )


def _rows_apart(
    rows: DataFrame,
    log: TableLog,
    kinds: Mapping[str, str],
    relations: Relations,
    part: SampledRows | None,
    text: Text,
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """The number of differing rows, by kind of difference, and some of them."""
    names = [spark_name(name) for name in kinds]
    expected = rows.select(*names)
    if part is None and _equal_here(expected, log, list(kinds)):
        return {}, []
    held = relations.spark.table(relations.at(log.snapshot).strip("`")).select(*names)
    if part is not None:
        expected, held = part.of(expected, kinds), part.of(held, kinds)
    differing = difference(expected, held, zeros=not _rows_meet(text))
    counts = _counts(differing)
    return counts, _readable_rows(differing.limit(SAMPLE)) if counts else []


def _readable_rows(rows: DataFrame) -> list[dict[str, Any]]:
    """The rows, with U+FFFD instead of bytes that are no UTF-8, which Python cannot read."""
    texts = {name for name, type_ in rows.dtypes if type_ == "string"}
    readable = rows.selectExpr(
        *(f"make_valid_utf8({spark_name(n)}) AS {spark_name(n)}" if n in texts else spark_name(n)
          for n in rows.columns)
    )  # fmt: skip
    return python_rows(arrow_rows(readable))


def _equal_here(expected: DataFrame, log: TableLog, names: list[str]) -> bool:
    """Whether two small tables are certainly equal; otherwise Spark compares them.

    Certainly, since -0.0 and sums of floats in another order differ here, but not in Spark.
    """

    if log.row_count is None or log.row_count > SMALL:
        return False
    actual = read_stored_rows(log, {}, names, limit=SMALL)
    if actual is None:
        return False
    result = arrow_rows(expected.limit(SMALL + 1))
    if result.num_rows != actual.num_rows:
        return False
    both = pa.concat_tables([add_weight(result.cast(actual.schema), 1), add_weight(actual, -1)])
    return net_rows(both).num_rows == 0


def _rows_meet(text: Text) -> bool:
    """Whether a query combines rows in groups, windows or an order; also if that is unknown."""
    try:
        return text.tree.find(*_MEET) is not None
    except InvalidDefinition:  # only Spark understands it
        return True


_MEET = (exp.AggFunc, exp.Window, exp.Order)
"""In these, rows that differ only in the sign of a zero are combined."""


def difference(expected: DataFrame, actual: DataFrame, *, zeros: bool) -> DataFrame:
    """The rows in which two multisets differ: their columns, ``__difference``, ``__copies``. Both
    have columns of the same names, in any order. `zeros`: -0.0 differs from 0.0."""
    from pyspark.sql import functions as F

    types = types_of(actual)
    expected, actual = _comparable(expected, types), _comparable(actual, types)
    quoted = [F.col(spark_name(name)) for name in types]
    both = expected.select("*", F.lit(1).alias("__side")).unionAll(
        actual.select("*", F.lit(-1).alias("__side"))
    )
    marks = zero_marks(types) if zeros else {}
    by = [F.expr(mark).alias(f"__zeros_{number}") for number, mark in enumerate(marks.values())]
    counted = both.groupBy(*quoted, *by).agg(F.sum("__side").alias("__n")).where("__n <> 0")
    floats = {name for name, type_ in actual.dtypes if type_ in ("double", "float")}
    if floats:
        counted = _without_rounding(counted, floats)
    kind = F.when(F.col("__n") > 0, "missing").otherwise("unexpected")
    return counted.select(*quoted, kind.alias("__difference"), F.abs("__n").alias("__copies"))


def _comparable(rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """The columns in the order of `types`; VARIANT and MAP in a form by which Spark can group."""
    from pyspark.sql import functions as F

    changed = {name: F.expr(form) for name, form in comparable_columns(types).items()}
    columns = {name: changed.get(name, F.col(spark_name(name))) for name in types}
    return rows.select(*(each.alias(name) for name, each in columns.items()))


def _without_rounding(counted: DataFrame, floats: set[str]) -> DataFrame:
    """Remove pairs of differing rows that are equal within the tolerance of floats.

    Rows that agree in all other columns are paired in the order of their floats.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    exact = [F.col(spark_name(n)) for n in counted.columns if n not in floats and n != "__n"]
    numbered = counted.withColumn("__side", F.signum("__n").cast("int")).withColumn(
        "__row",
        F.row_number().over(
            Window.partitionBy(*exact, "__side").orderBy(
                *[spark_name(name) for name in sorted(floats)]
            )
        ),
    )
    pair = Window.partitionBy(*exact, "__row", F.abs("__n"))
    close = F.count("*").over(pair) == 2
    for name in floats:
        least, most = F.min(spark_name(name)).over(pair), F.max(spark_name(name)).over(pair)
        size = F.greatest(F.abs(least), F.abs(most))
        same = (most - least <= size * TOLERANCE) | (least == most)
        both_null = F.count(spark_name(name)).over(pair) == 0
        close = close & (both_null | (same & (F.count(spark_name(name)).over(pair) == 2)))
    marked = numbered.withColumn("__close", F.coalesce(close, F.lit(False)))
    return marked.where("NOT __close").drop("__side", "__row", "__close")


def _counts(differing: DataFrame) -> dict[str, int]:
    from pyspark.sql import functions as F

    counted = differing.groupBy("__difference").agg(F.sum("__copies").alias("n")).collect()
    return {row["__difference"]: int(row["n"]) for row in counted}


LEAST = 1_000
"""A sample has about this many rows at least: fewer rows of a small table would prove nothing."""
_BUCKETS = 1_000_000
# Two recomputations of a sum of floats differ, and equal collated strings may differ in bytes.
_HASHED = ("boolean", "tinyint", "smallint", "int", "bigint", "date", "string", "binary")
_HASHED_PREFIXES = ("decimal", "timestamp", "char", "varchar")


Sample = Annotated[float, Range(0, 1, above=True)]
"""The fraction of the rows to compare."""


@dataclass(frozen=True)
class SampledRows:
    """The rows whose hash is below a bound."""

    fraction: float
    """The approximate fraction of all rows, from 0 to 1."""
    seed: int
    """Selects the rows; the same seed selects the same ones."""
    columns: tuple[str, ...]

    def of(self, rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
        """The rows of a relation that belong to the sample. The hash depends on the types of the
        columns, so these are cast first."""
        from pyspark.sql import functions as F

        values = [F.col(spark_name(name)).cast(types[name]) for name in self.columns]
        bucket = F.pmod(F.xxhash64(F.lit(self.seed), *values), F.lit(_BUCKETS))
        return rows.where(bucket < F.lit(round(self.fraction * _BUCKETS)))


def sampled_rows(
    table: StreamTable, stored: TableWithState, sample: float | None, seed: int | None
) -> SampledRows | None:
    """The sample of a stored table to compare: a fraction of the rows, which the seed selects, or
    chance. None for all rows; also if the table is small, or if no column can be hashed."""
    if sample is None:
        return None
    fraction = max(sample, LEAST / max(1, stored.log.row_count or _BUCKETS))
    kinds = visible_types(stored.query_columns)
    can = tuple(name for name, kind in kinds.items() if _is_hashable(kind))
    if fraction >= 1 or not can:
        return None
    keys = _keys(table, stored)
    columns = tuple(name for name in can if name in keys) or can
    return SampledRows(fraction, random.randrange(2**31) if seed is None else seed, columns)


def _keys(table: StreamTable, stored: TableWithState) -> tuple[str, ...]:
    """The stored columns that identify a group; none if the plan has no groups."""
    columns = {name: seen.columns for name, seen in stored.state.sources.items()}
    try:
        return compile_table(table, table.text(columns), columns).key or ()
    except StreamTablesError:  # mode FULL accepts any query
        return ()


def _is_hashable(kind: str) -> bool:
    return kind in _HASHED or (kind.startswith(_HASHED_PREFIXES) and "collate" not in kind.lower())
