"""A store that speaks S3's protocol."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

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


@contextmanager
def running() -> Iterator[Store]:
    """A store with an empty bucket, until the end of the block.

    In a process of its own: delta-rs waits for some answers without letting other threads run.
    """
    with _served(["-m", "moto.server", "-H", "127.0.0.1", "-p"]) as store:
        _answering(store).create_bucket(Bucket=BUCKET)
        yield store


@contextmanager
def losing(store: Store) -> Iterator[Store]:
    """The same store, which commits and does not say so; see `losing.py`."""
    script = str(Path(__file__).parent / "losing.py")
    with _served([script], store.address.removeprefix("http://")) as lossy:
        _answering(lossy).list_buckets()
        yield lossy


@contextmanager
def _served(command: list[str], *more: str) -> Iterator[Store]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    whole = [sys.executable, *command, str(port), *more]
    with subprocess.Popen(whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield Store(f"http://127.0.0.1:{port}")
        finally:
            server.kill()  # SIGTERM may be ignored here, and then is by its child, too


def _answering(store: Store) -> Any:
    """A client, which waits until the store has started."""
    return boto3.client(
        "s3",
        endpoint_url=store.address,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name=REGION,
        config=Config(retries={"max_attempts": 60, "mode": "standard"}),
    )
