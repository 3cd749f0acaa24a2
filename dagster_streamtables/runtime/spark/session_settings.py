"""Settings for some statements of a session: of our commits, and whether Spark compiles them.

A user may run an INSERT in the session in which we run a MERGE. With the MERGE's transaction number
Delta would store that INSERT, and skip the next one. So other statements must not see them.

To compile a statement takes Spark longer than to run it over a few thousand rows: a refresh of five
small tables took 1.2 s interpreted and 1.6 s compiled. Over 1M rows, a whole query takes twice as
long interpreted.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.session import is_ours, shares_files
from dagster_streamtables.runtime.spark.settings import settings_for_now

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


writing: defaultdict[SparkSession, threading.Lock] = defaultdict(threading.Lock)
"""Held while one of our sessions has other settings; several threads may use it."""


@contextmanager
def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session that has the settings until the end of a block.

    Yields:
        The session itself if this package opened it, else a clone, with its views, functions and
        settings: that takes some 10 ms, and more for the first statement.
    """
    if is_ours(spark):
        with writing[spark], settings_for_now(spark, settings):
            yield spark
        return
    clone = _clone(spark)
    try:
        for name, value in settings.items():
            clone.conf.set(name, value)
        yield clone
    finally:
        _end(clone)


def _clone(spark: SparkSession) -> SparkSession:
    from pyspark.sql import SparkSession

    of_any_kind: Any = spark
    if is_connect(spark):
        return of_any_kind.cloneSession()
    return SparkSession(spark.sparkContext, of_any_kind._jsparkSession.cloneSession())


def _end(clone: Any) -> None:
    if is_connect(clone):  # in this process, it ends once nothing refers to it
        clone.client.release_session()
        clone.client.close()
