"""The store of this suite: `server.py` in a process of its own, started and asked."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pyarrow as pa
from deltalake import write_deltalake

from qa.object_store.faults import Faults

KEY, SECRET, REGION, BUCKET = "key", "secret", "us-east-1", "lake"


@dataclass(frozen=True)
class Store:
    address: str

    def root(self, name: str) -> str:
        """The root of a lake, as delta-rs and Spark both take it."""
        return f"s3a://{BUCKET}/{name}"

    @property
    def options(self) -> Mapping[str, str]:
        """For delta-rs."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
        }

    @property
    def settings(self) -> Mapping[str, str]:
        """For Spark."""
        told = {
            "endpoint": self.address,
            "endpoint.region": REGION,
            "access.key": KEY,
            "secret.key": SECRET,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in told.items()}


@dataclass(frozen=True)
class AuditedStore(Store):
    audit: Path

    def place(self, bucket: str, table: str = "table") -> str:
        """The location of a table, as delta-rs and Spark both take it."""
        return f"s3a://{bucket}/{table}"

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.address,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
        )

    def make(self, bucket: str) -> None:
        self.client.create_bucket(Bucket=bucket)

    def make_table(self, bucket: str) -> str:
        """The location of an empty table of one column, in a bucket of its own."""
        self.make(bucket)
        empty = pa.table({"id": pa.array([], pa.string())})
        write_deltalake(self.place(bucket), empty, storage_options=dict(self.options))
        return self.place(bucket)

    def drop(self, bucket: str) -> None:
        """Forget a bucket with all that is in it."""
        self._ask(f"drop/{bucket}")

    def set(self, faults: Faults) -> None:
        self._ask("faults", faults.text())

    def met(self) -> Counter[str]:
        """How often each fault has happened so far."""
        return Counter(self._ask()["met"])

    def commits(self, bucket: str) -> int:
        return self._ask()["commits"].get(bucket, 0)

    def counts(self, bucket: str) -> Counter[tuple[str, ...]]:
        """The requests so far, by operation, kind of file, and status."""
        found: Counter[tuple[str, ...]] = Counter()
        for text, number in self._ask()["counts"].items():
            where, operation, what = text.split(" ", 2)
            if where == bucket:
                found[(operation, *what.rsplit(" ", 1))] += number
        return found

    def audited(self, bucket: str) -> list[dict[str, Any]]:
        """The puts of commits of a bucket."""
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [line for line in lines if line["bucket"] == bucket]

    def log(self, bucket: str) -> dict[int, bytes]:
        """The commits that are there, by version."""
        client, found = self.client, {}
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix="table/_delta_log/0"):
            for each in page.get("Contents", ()):
                if each["Key"].endswith(".json"):
                    body = client.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
                    found[int(each["Key"][-25:-5])] = body
        return found

    def _ask(self, what: str = "", content: str = "") -> Any:
        # Others keep both cores busy.
        return httpx.post(f"{self.address}/-/{what}", content=content, timeout=120).json()


@contextmanager
def audited_store(folder: Path) -> Iterator[AuditedStore]:
    """An empty store without faults, until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    audit = folder / "audit.jsonl"
    command = [sys.executable, "-m", "qa.object_store.server", str(port), str(audit)]
    with (
        (folder / "server.log").open("wb") as said,
        subprocess.Popen(
            command, stdout=said, stderr=said, cwd=Path(__file__).parents[2]
        ) as server,
    ):
        try:
            store = AuditedStore(f"http://127.0.0.1:{port}", audit)
            _wait(store, server)
            yield store
        finally:
            server.kill()


def _wait(store: AuditedStore, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            store.set(Faults())
            return
        except httpx.TransportError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.2)
