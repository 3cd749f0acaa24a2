"""Settings for some statements of a session, which its other statements must not see.

A user may run an INSERT in the session in which we run a MERGE. With the MERGE's transaction number
Delta would store that INSERT, and skip the next one.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.session import is_ours
from dagster_streamtables.runtime.spark.settings import settings_for_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
