"""`python -m qa.object_store.spark_writer LOG_STORE`: a JVM whose threads append by Spark.

A statement takes half a second, so most commits are given to Delta's log store directly, as Delta
gives them: version after version, until one is free.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
import time
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from qa.object_store.jobs import Job, serve
from qa.object_store.records import Belief, Records
from qa.object_store.spark import LogStore, session
from qa.object_store.spark_errors import chain

_META = "spark.databricks.delta.commitInfo.userMetadata"
_TAKEN = "FileAlreadyExistsException"


class Jvm:
    """The JVM of this process, which starts with its first job."""

    def __init__(self, log_store: LogStore) -> None:
        self.log_store = log_store
        self.spark: SparkSession | None = None

    def prepare(self, job: Job) -> None:
        if self.spark is None:
            # Of tables that are over, nothing needs to be known.
            more = {"spark.databricks.delta.delta.log.cacheSize": "4"}
            self.spark = session(job.store, self.log_store, more)
        self.spark.sql(f"SELECT * FROM delta.`{job.place}`").schema  # noqa: B018

    def work(self, job: Job) -> None:
        assert self.spark
        writers = [Writer(self.spark, job, f"{job.name}-{n}") for n in range(job.threads)]
        if job.interrupts:
            threading.Thread(target=_interrupt, args=(job, writers), daemon=True).start()
        threads = [threading.Thread(target=each.run) for each in writers]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        # A file system of each bucket, with its threads and connections.
        self.spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # pyright: ignore


class Writer:
    """One thread."""

    def __init__(self, spark: SparkSession, job: Job, name: str) -> None:
        self.job, self.name = job, name
        self.records = Records(job.root / f"{name}.jsonl")
        self.spark: Any = spark.newSession()
        self.java: Any = spark._jvm
        self.thread: Any = None
        self.next = 0

    def run(self) -> None:
        self.thread = self.java.java.lang.Thread.currentThread()
        for id, with_row in self.job.turns(self.name):
            belief = Belief(id, "insert" if with_row else "log store")
            try:
                if not self.next:
                    self.open()
            except Exception:
                self.java.java.lang.Thread.interrupted()
                continue  # the store is slow
            self.records.note(belief)
            try:
                (self.insert if with_row else self.commit)(belief)
            except Exception as error:
                self.java.java.lang.Thread.interrupted()
                self.records.failed(belief, chain(error))

    def open(self) -> None:
        deltas = self.java.org.apache.spark.sql.delta.DeltaLog
        log = deltas.forTable(self.spark._jsparkSession, self.job.place)
        self.log_store, self.conf = log.store(), log.newDeltaHadoopConf()
        self.next = log.unsafeVolatileSnapshot().version() + 1

    def insert(self, belief: Belief) -> None:
        self.spark.conf.set(_META, belief.id)
        self.spark.sql(f"INSERT INTO delta.`{self.job.place}` VALUES ('{belief.id}')")
        self.records.done(belief, None)

    def commit(self, belief: Belief) -> None:
        line = json.dumps({"commitInfo": _info(belief.id)})
        while True:
            try:
                self.put(self.next, line)
            except Py4JJavaError as error:
                if not error.java_exception.getClass().getName().endswith(_TAKEN):
                    raise
                self.next += 1
            else:
                digest = hashlib.sha256(f"{line}\n".encode()).hexdigest()
                self.records.done(belief, self.next, digest)
                self.next += 1
                return

    def put(self, version: int, line: str) -> None:
        path = self.java.org.apache.hadoop.fs.Path(
            f"{self.job.place}/_delta_log/{version:020}.json"
        )
        lines = self.java.java.util.ArrayList()
        lines.add(line)
        scala = self.java.scala.jdk.javaapi.CollectionConverters.asScala(lines.iterator())
        self.log_store.write(path, scala, False, self.conf)


def _info(id: str) -> dict[str, Any]:
    return {
        "timestamp": int(time.time() * 1000),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isBlindAppend": True,
        "operationMetrics": {},
        "userMetadata": id,
        "engineInfo": "qa.object_store",
    }


def _interrupt(job: Job, writers: list[Writer]) -> None:
    """Interrupt one after the other, as Spark does for a statement that is cancelled."""
    chance = random.Random(job.name)
    while not job.ends():
        time.sleep(chance.expovariate(1 / job.interrupts))
        thread = chance.choice(writers).thread
        if thread is not None:
            thread.interrupt()


if __name__ == "__main__":
    jvm = Jvm(LogStore(sys.argv[1]))
    serve(jvm.work, jvm.prepare)
