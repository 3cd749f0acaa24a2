"""Whether Spark compiles what it runs to Java, or interprets it.

To compile a statement takes Spark longer than to run it over a few thousand rows: a refresh of five
small tables took 1.2 s interpreted and 1.6 s compiled. Over 1M rows, a whole query takes twice as
long interpreted.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.session import shares_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = 300_000
"""Rows; about here, both take the same time."""
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_interpreting: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def choose_codegen(spark: SparkSession, rows: int | None) -> None:
    """Interpret the next statements of a session, or compile them.

    Does nothing to sessions of servers and programs that are not ours. What two threads choose for
    one session may differ: the rows are the same either way. An expression that a condition guards
    may fail when it is interpreted; see `Inputs.compile`.

    Args:
        spark: The session.
        rows: About how many rows they read; None if that is unknown.
    """
    if not (is_connect(spark) and shares_files(spark)):
        return
    interpret = rows is not None and rows <= FEW
    if _interpreting.get(spark, False) is interpret:
        return
    for name, value in _INTERPRETED.items():
        if interpret:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)
    _interpreting[spark] = interpret


def is_interpreting(spark: SparkSession) -> bool:
    """Whether `choose_codegen` has the statements of a session interpreted."""
    return _interpreting.get(spark, False)
