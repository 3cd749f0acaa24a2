"""The checksums that Spark writes beside commits: the number of files, their size, the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dagster_streamtables.runtime.doctor.checkpoints import LogState
from dagster_streamtables.runtime.doctor.commits import CommitRecord
from dagster_streamtables.runtime.doctor.findings import Contradiction, Trace
from dagster_streamtables.runtime.doctor.log_files import LogFiles


class Checksums:
    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._agreed = log.oldest - 1
        """The newest version whose checksum was right."""
        self._known: set[str] = set()
        """What differed at the last checksum: an erased commit shows in all that follow."""

    def differences(self, commit: CommitRecord, state: LogState) -> Iterator[Contradiction]:
        path = self._log.checksums.get(commit.version)
        found = self._log.read_json(path) if path else {}
        if not found:
            return
        differing = set(_differing(found, state))
        new = differing - self._known
        self._known = differing
        if new:
            what = f"the checksum of version {commit.version} differs from the commits up to it"
            first = min(self._agreed + 1, commit.version)
            yield Contradiction(Trace.CHECKSUM, first, commit.version, what, new, sure=True)
        elif _is_of_other(found, commit):
            what = f"the checksum of version {commit.version} is of another commit"
            told = [f"id {found['txnId']}, not {commit.id}"]
            yield Contradiction(
                Trace.CHECKSUM, commit.version, commit.version, what, told, sure=True
            )
        if not differing:
            self._agreed = commit.version


def _is_of_other(found: Mapping[str, Any], commit: CommitRecord) -> bool:
    ids = found.get("txnId"), commit.id
    return None not in ids and ids[0] != ids[1]


def _differing(found: Mapping[str, Any], state: LogState) -> Iterator[str]:
    """How a checksum differs, in numbers that remain equal while the difference does."""
    for name, value in (("numFiles", len(state.live)), ("tableSizeBytes", state.size)):
        if isinstance(found.get(name), int) and found[name] != value:
            yield f"{name} is {found[name] - value:+} against the commits"
    if found.get("numMetadata", 1) != 1:
        yield f"numMetadata is {found['numMetadata']}"
    if _schema(found.get("metadata")) not in (None, _schema(state.metadata)):
        yield "another schema or other properties"
    if _versions(found.get("protocol")) not in (None, _versions(state.protocol)):
        yield "another protocol"


def _schema(metadata: Mapping[str, Any] | None) -> object:
    if not metadata:
        return None
    properties = metadata.get("configuration") or {}
    return (
        metadata.get("id"),
        json.loads(metadata.get("schemaString") or "null"),
        list(metadata.get("partitionColumns") or ()),
        {name: value for name, value in properties.items() if value is not None},
    )


def _versions(protocol: Mapping[str, Any] | None) -> object:
    if not protocol:
        return None
    features = (protocol.get(name) or () for name in ("readerFeatures", "writerFeatures"))
    numbers = (protocol.get(name) for name in ("minReaderVersion", "minWriterVersion"))
    return (*numbers, *map(sorted, features))
