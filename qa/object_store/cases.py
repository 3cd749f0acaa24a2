"""Stores that do what they should not, one after the other, under commits of Spark.

Whatever is raised, the log has whole commits only, and as many as were made.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from qa.object_store.faults import Faults
from qa.object_store.spark import session
from qa.object_store.spark_errors import chain
from qa.object_store.store import AuditedStore
from qa.object_store.verdict import whole_commits

# A client that gives up early; S3A takes no shorter time.
_HASTY = {"connection.timeout": "15s", "attempts.maximum": "1", "retry.limit": "1"}
_PARTS = {"multipart.size": "5M", "multipart.threshold": "5M"}
_LARGE = 12 * 2**20


@dataclass(frozen=True)
class Case:
    name: str
    faults: Faults
    fails: str
    """What is among the words of the error; empty if the commit succeeds."""
    work: Callable[[Any, AuditedStore, str], int]
    """Makes commits, and returns their number; an error is the last thing that it does."""
    settings: tuple[tuple[str, str], ...] = ()
    """Of S3A, for the bucket of the case."""

    @property
    def bucket(self) -> str:
        return self.name.replace(" ", "-")


def _insert(spark: SparkSession, store: AuditedStore, bucket: str) -> int:
    spark.sql(f"INSERT INTO delta.`{store.place(bucket)}` VALUES ('x')")
    return 1


def _in_turn(spark: SparkSession, store: AuditedStore, bucket: str) -> int:
    """Both engines, each after the other one, and Spark reads what is there."""
    place = store.place(bucket)
    for _ in range(4):
        _insert(spark, store, bucket)
        rows = pa.table({"id": ["y"]})
        write_deltalake(place, rows, mode="append", storage_options=dict(store.options))
    assert spark.sql(f"SELECT * FROM delta.`{place}`").count() == 8
    history = spark.sql(f"DESCRIBE HISTORY delta.`{place}`").collect()
    assert [each.version for each in history] == list(range(8, -1, -1)), history
    return 8


def _large(spark: Any, store: AuditedStore, bucket: str) -> int:
    """A commit in several parts, and another one of the same version."""
    place, java = store.place(bucket), spark._jvm
    log = java.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, place)
    path = java.org.apache.hadoop.fs.Path(f"{place}/_delta_log/{1:020}.json")
    info = {"operation": "WRITE", "operationParameters": {}}
    for text in ("x", "y"):
        lines = java.java.util.ArrayList()
        lines.add(_commit(info | {"userMetadata": text * _LARGE}))
        scala = java.scala.jdk.javaapi.CollectionConverters.asScala(lines.iterator())
        log.store().write(path, scala, False, log.newDeltaHadoopConf())
    return 2


def _commit(info: dict[str, Any]) -> str:
    return json.dumps({"commitInfo": {"timestamp": 0, **info}})


def _gone(code: str) -> Faults:
    """Between the data and the commit, and to readers, too."""
    return Faults(refuse=code, refuse_reads=True, spares_data=True, after_data=True)


CASES = (
    Case("ignored condition", Faults(unconditional=True), "ignores If-None-Match", _insert),
    Case("read only", Faults(refuse="AccessDenied"), "AccessDenied", _insert),
    Case("read only after data", Faults(refuse="AccessDenied", after_data=True), "AccessDenied",
         _insert),
    Case("bucket gone after data", _gone("NoSuchBucket"), "NoSuchBucket",
         _insert),
    Case("expired token after data", _gone("ExpiredToken"), "ExpiredToken",
         _insert),
    Case("clock of the client", _gone("RequestTimeTooSkewed"),
         "RequestTimeTooSkewed", _insert),
    Case("clock of the store", Faults(clock=7200), "", _in_turn),
    Case("conflict for ever", Faults(conflict=1), "ConditionalRequestConflict", _insert),
    Case("every answer lost", Faults(lost=1, agent="Hadoop"), "", _in_turn),
    Case("every answer failed", Faults(failed=1, agent="Hadoop"), "", _in_turn),
    Case("every answer late", Faults(held=20), "", _insert, tuple(_HASTY.items())),
    Case("large commits", Faults(), "FileAlreadyExists", _large, tuple(_PARTS.items())),
    Case("large commits lost", Faults(lost=1), "FileAlreadyExists", _large,
         tuple(_PARTS.items())),
)  # fmt: skip


def cases(store: AuditedStore, pattern: str = "*") -> int:
    """The number of cases that are wrong, of those with such a name."""
    chosen = [case for case in CASES if fnmatch(case.name, pattern)]
    more = {
        f"spark.hadoop.fs.s3a.bucket.{case.bucket}.{name}": value
        for case in CASES
        for name, value in case.settings
    }
    more["spark.log.level"] = "OFF"  # the errors are wanted
    spark = session(store, more=more)
    try:
        wrong = [case.name for case in chosen if not _is_right(case, store, spark)]
    finally:
        spark.stop()
    print(f"{len(chosen)} cases, wrong: {', '.join(wrong) or 'none'}")
    return len(wrong)


def _is_right(case: Case, store: AuditedStore, spark: SparkSession) -> bool:
    place = store.make_table(case.bucket)
    spark.sql(f"SELECT * FROM delta.`{place}`").collect()
    store.set(case.faults)
    began, made, said = time.monotonic(), 0, ""
    try:
        made = case.work(spark, store, case.bucket)
    except Exception as error:
        said = chain(error)
    finally:
        store.set(Faults())
    return _judged(case, store, made, said, time.monotonic() - began)


def _judged(case: Case, store: AuditedStore, made: int, said: str, seconds: float) -> bool:
    met = Counter(each["status"] for each in store.audited(case.bucket))
    versions = sorted(whole_commits(store.log(case.bucket)))
    expected = 2 if case.work is _large else 1 + made
    overwritten = [e for e in store.audited(case.bucket) if e["status"] == 200 and e["existed"]]
    table = DeltaTable(store.place(case.bucket), storage_options=dict(store.options))
    right = (
        (case.fails in said if case.fails else not said)
        and versions == list(range(expected))
        and table.version() == expected - 1
        and not overwritten
    )
    print(f"{case.name}: {'right' if right else 'WRONG'}; versions {versions}, "
          f"commits answered {dict(met)}, {seconds:.0f} s\n  {said or 'no error'}",
          flush=True)  # fmt: skip
    return right
