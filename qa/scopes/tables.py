"""Small tables whose columns, fields and own names repeat one another's."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

COLUMNS = {
    "a": {"k": "int", "x": "int", "s": "struct<x:int,k:int>"},
    "b": {"k": "int", "y": "int", "x": "int"},
    "c": {"a": "int", "s": "int", "k": "int", "t": "struct<k:int,b:int>"},
    "d": {"K": "int", "q": "array<int>", "a": "struct<x:int,y:int>"},
}
FIELDS = {("a", "s"): "xk", ("c", "t"): "kb", ("d", "a"): "xy"}
"""(table, column) → the fields of the struct."""
_ROWS = {
    "a": "(1, 2, named_struct('x', 3, 'k', 1)), (2, 2, named_struct('x', 1, 'k', 2)), "
    "(1, 5, named_struct('x', 2, 'k', 2)), (NULL, 1, named_struct('x', NULL, 'k', 1))",
    "b": "(1, 2, 3), (2, 1, 1), (2, 5, 2), (3, NULL, 1)",
    "c": "(1, 2, 1, named_struct('k', 1, 'b', 2)), (2, 1, 2, named_struct('k', 2, 'b', 2)), "
    "(5, 5, 3, named_struct('k', 3, 'b', 1))",
    "d": "(1, array(1, 2), named_struct('x', 1, 'y', 2)), (2, array(2), named_struct('x', 2, "
    "'y', 1)), (4, array(1, 3), named_struct('x', 2, 'y', 3))",
}


def create(spark: SparkSession, folder: Path) -> None:
    """Temporary views over files: a view of constants has columns that are never NULL, and other
    plans."""
    for name, columns in COLUMNS.items():
        listed = ", ".join(f"CAST(`{n}` AS {kind}) AS `{n}`" for n, kind in columns.items())
        named = ", ".join(f"`{each}`" for each in columns)
        rows = spark.sql(f"SELECT {listed} FROM VALUES {_ROWS[name]} AS v ({named})")
        rows.write.parquet(str(folder / name))
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
