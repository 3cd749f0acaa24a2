"""`azure`: what delta-rs does on Azure's blobs, on the emulator that npm has (Azurite).

Many processes write one document and append to one table; a replication and a subscription follow a
table. Spark takes no part: its connector needs the API of Data Lake Storage, which Azurite lacks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from dagster_streamtables import (
    FromLake,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replication,
    Replications,
    subscribe,
)
from dagster_streamtables.runtime.storage.documents import Document

_ACCOUNT = "devstoreaccount1"
# The one of every Azurite, from its documentation.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_CONTAINER, _VERSION = "lake", "2021-08-06"
_PROCESSES = 4
_FEED = {"delta.enableChangeDataFeed": "true"}


@contextmanager
def azurite(folder: Path) -> Iterator[Mapping[str, str]]:
    """The options of delta-rs for a container of an Azurite, which npm installs into a folder.

    Raises:
        FileNotFoundError: There is no npm.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("Azurite is a package of npm, which is not on PATH")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
    subprocess.run([*install, "azurite"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = folder / "node_modules/.bin/azurite-blob"
    flags = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    with (folder / "azurite.log").open("w") as log:
        server = subprocess.Popen([command, *flags], stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    try:
        _create_container(address)
        # Otherwise delta-rs lists from an offset, which Azurite does not know: commits are unseen.
        os.environ["AZURITE_BLOB_STORAGE_URL"] = address.removesuffix(f"/{_ACCOUNT}")
        yield {"azure_storage_use_emulator": "true"}
    finally:
        server.kill()
        server.wait()


def _create_container(address: str) -> None:
    now = formatdate(usegmt=True)
    about = f"x-ms-date:{now}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}/{_ACCOUNT}/{_CONTAINER}"
    signed = ("PUT" + "\n" * 12 + about + "\nrestype:container").encode()
    key = base64.b64encode(hmac.new(base64.b64decode(_KEY), signed, hashlib.sha256).digest())
    headers = {
        "x-ms-date": now,
        "x-ms-version": _VERSION,
        "Authorization": f"SharedKey {_ACCOUNT}:{key.decode()}",
    }
    where = f"{address}/{_CONTAINER}?restype=container"
    # It takes seconds to start.
    transport = httpx.HTTPTransport(retries=10)
    with httpx.Client(transport=transport) as client:
        client.put(where, headers=headers).raise_for_status()


@dataclass(frozen=True)
class Counter:
    """A document that processes count up."""

    number: int

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number}

    @classmethod
    def from_json(cls, values: Any) -> Counter:
        return cls(values["number"])


def azure(folder: Path, commits: int, windows: int) -> list[str]:
    """What was wrong, each in a sentence.

    Args:
        folder: For the emulator.
        commits: How many changes of the document, and how many appends.
        windows: How many times the replicated table changes.
    """
    with azurite(folder) as options:
        root = f"az://{_CONTAINER}/lake"
        each = [commits // _PROCESSES] * _PROCESSES
        with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
            list(pool.map(_count, [root] * _PROCESSES, [dict(options)] * _PROCESSES, each))
            # Of two that create a table, delta-rs fails the second.
            none = pa.table({"id": pa.array([], pa.int64()), "amount": pa.array([], pa.int64())})
            write_deltalake(f"{root}/public/orders", none, storage_options=dict(options))
            starts = [number * 1_000_000 for number in range(_PROCESSES)]
            list(pool.map(_append, [root] * _PROCESSES, [dict(options)] * _PROCESSES, starts, each))
        found = []
        known = _document(root, options).read()
        if known != Counter(sum(each)):
            found.append(f"{sum(each)} changes of a document left {known}")
        ids = _ids(f"{root}/public/orders", options)
        expected = sorted(
            start + i for start, n in zip(starts, each, strict=True) for i in range(n)
        )
        if ids != expected:
            found.append(f"{len(expected)} rows were appended, and {len(ids)} are there")
        found += _follow(f"az://{_CONTAINER}/shop", f"az://{_CONTAINER}/copy", options, windows)
    return found


def _document(root: str, options: Mapping[str, str]) -> Document[Counter]:
    return Document(root, "counter", Counter, options, noun="counter")


def _count(root: str, options: dict[str, str], times: int) -> None:
    document = _document(root, options)
    for _ in range(times):
        while True:
            try:
                document.change(lambda known: Counter((known.number if known else 0) + 1))
                break
            except Exception as error:  # others were first at each of its attempts
                if type(error).__name__ != "ConflictingCommit":
                    raise


def _append(root: str, options: dict[str, str], start: int, times: int) -> None:
    patient = CommitProperties(max_commit_retries=1000)
    for number in range(times):
        rows = pa.table({"id": [start + number], "amount": [number]})
        write_deltalake(
            f"{root}/public/orders",
            rows,
            mode="append",
            storage_options=options,
            commit_properties=patient,
        )


def _ids(place: str, options: Mapping[str, str]) -> list[int]:
    table = DeltaTable(place, storage_options=dict(options)).to_pyarrow_table()
    return sorted(table.column("id").to_pylist())


def _follow(shop: str, copy: str, options: Mapping[str, str], windows: int) -> Iterator[str]:
    """A replication and a subscription of a table that is changed."""
    place, dice = f"{shop}/public/orders", random.Random(1)
    rows = pa.table({"id": list(range(50)), "amount": [0] * 50})
    write_deltalake(place, rows, configuration=_FEED, storage_options=dict(options))
    publication = Publication("sales", (PublicationEntry("orders", key=("id",)),))
    Publications(shop, options).create(publication)
    replications = Replications(Lake(copy, storage_options=options))
    source = FromLake(shop, ["sales"], storage_options=options)
    replications.create(Replication("eu", source, schema="eu"))
    counts: dict[tuple[int, int], int] = {}
    with subscribe(Lake(shop, storage_options=options), "orders") as changes:
        for window in range(windows):
            if window:
                table = DeltaTable(place, storage_options=dict(options))
                table.delete(f"id = {dice.randrange(50)}")
                table.update({"amount": f"amount + {window}"}, predicate=f"id % 7 = {window % 7}")
                more = pa.table({"id": [100 + window], "amount": [window]})
                write_deltalake(place, more, mode="append", storage_options=dict(options))
            replications.refresh("eu")
            for row in changes.fetch(None, timeout=0).to_pylist():
                key = row["id"], row["amount"]
                counts[key] = counts.get(key, 0) + row["_diff"]
            now = _rows(place, options)
            if _rows(f"{copy}/eu/orders", options) != now:
                yield f"the replica differs after window {window}"
            if sorted(key for key, number in counts.items() for _ in range(number)) != now:
                yield f"the subscription differs after window {window}"


def _rows(place: str, options: Mapping[str, str]) -> list[tuple[int, int]]:
    rows = DeltaTable(place, storage_options=dict(options)).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["amount"]) for row in rows)
