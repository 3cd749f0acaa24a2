"""Whether a stream table may be refreshed: errors in a row, and who stopped it.

An error that only a person can mend comes back at each attempt, so after a number of them the table
is left alone until somebody resumes it or changes its definition. What may pass (a lost race, a
machine without memory) does not count.

It is kept beside the tables, in ``<root>/_streamtables/<name>.json``: a table that was never made
has no log to keep it in. Nothing that a refresh is built upon is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from dagster_streamtables.errors import (
    DamagedTable,
    FailedQuery,
    InvalidDefinition,
    SourceProblem,
    StreamTablesError,
    SuspendedTable,
)
from dagster_streamtables.runtime.blame import last_word
from dagster_streamtables.runtime.names import files_below
from dagster_streamtables.runtime.table import StreamTable

FOLDER = "_streamtables"
"""Below the root: what is kept beside the tables."""
_LONGEST = 200
_LASTING = (FailedQuery, InvalidDefinition, SourceProblem)


@dataclass(frozen=True)
class Control:
    """What is known of the attempts to refresh a table."""

    errors: int = 0
    """In a row, of those that only a person can mend."""
    error: str = ""
    """The last of them, in a line."""
    at: str = ""
    """When that was, or when the table was suspended, in ISO 8601."""
    suspended: str = ""
    """Why it is left alone; empty where it is not."""
    definition: str = ""
    """Whose errors they are; empty where somebody suspended the table, whatever it says."""


class Controls:
    """The controls of the tables below one root."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._options = dict(storage_options or {})

    def read(self, name: str) -> Control:
        content = self._read(name)
        try:
            return Control() if content is None else Control(**json.loads(content))
        except (ValueError, TypeError) as error:
            raise DamagedTable(
                "what is known of the table's errors cannot be read",
                where=f"{self._root}/{FOLDER}/{name}.json",
                why=str(error),
                fix="delete the file; if the table was suspended, it is refreshed again",
            ).about(name) from error

    def of(self, table: StreamTable) -> Control:
        """The control of a table as it is declared: errors of another definition do not count."""
        control = self.read(table.name)
        return control if control.definition in ("", _fingerprint(table)) else Control()

    def suspend(self, name: str, why: str) -> None:
        """Leave a table alone until it is resumed."""
        self._write(name, Control(at=_now(), suspended=why or "suspended by hand"))

    def resume(self, name: str) -> bool:
        """Let it be refreshed again, its errors forgotten; whether it was suspended."""
        was = self.read(name)
        self._write(name, Control())
        return bool(was.suspended)

    def forget(self, name: str) -> bool:
        """Delete what is known of a table; whether anything was."""
        known = self._read(name) is not None
        if known and self._local is not None:
            (self._local / f"{name}.json").unlink(missing_ok=True)
        elif known:
            self._remote.delete_file(f"{FOLDER}/{name}.json")
        return known

    @contextmanager
    def watching(self, table: StreamTable) -> Iterator[None]:
        """Count the errors of one attempt.

        Raises:
            SuspendedTable: The table is left alone.
        """
        with last_word():
            control = self.of(table)
        if control.suspended:
            raise _suspended(control)
        try:
            yield
        except _LASTING as error:
            self._note(table.name, _counted(control, error, table))
            raise
        if control.errors:
            self._note(table.name, Control())

    def _note(self, name: str, control: Control) -> None:
        # A full disk must not hide the error, nor make one of a refresh that is committed.
        with suppress(OSError):
            self._write(name, control)

    def _read(self, name: str) -> bytes | None:
        try:
            if self._local is not None:
                return (self._local / f"{name}.json").read_bytes()
            with self._remote.open_input_file(f"{FOLDER}/{name}.json") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def _write(self, name: str, control: Control) -> None:
        content = json.dumps(asdict(control)).encode()
        if self._local is None:
            # What does not fit a buffer, pyarrow hands to delta-rs as an object that it refuses.
            path, size = f"{FOLDER}/{name}.json", len(content) + 1
            with self._remote.open_output_stream(path, buffer_size=size) as stream:
                stream.write(content)
            return
        self._local.mkdir(parents=True, exist_ok=True)
        new = self._local / f"{name}.{datetime.now(UTC).timestamp()}"
        new.write_bytes(content)
        new.replace(self._local / f"{name}.json")

    @property
    def _local(self) -> Path | None:
        return None if "://" in self._root else Path(self._root) / FOLDER

    @cached_property
    def _remote(self) -> Any:
        return files_below(self._root, self._options)


def _counted(control: Control, error: StreamTablesError, table: StreamTable) -> Control:
    said = _in_a_line(error)
    counted = Control(control.errors + 1, said, _now(), "", _fingerprint(table))
    if not 0 < table.max_consecutive_errors <= counted.errors:
        return counted
    return replace(counted, suspended=f"it failed {counted.errors} times in a row: {said}")


def _in_a_line(error: StreamTablesError) -> str:
    """What, and the beginning of why: Spark's reasons have many lines."""
    why = error.why.strip().partition("\n")[0][:_LONGEST]
    return f"{error.what}: {why}" if why else error.what


def _suspended(control: Control) -> SuspendedTable:
    return SuspendedTable(
        f"suspended since {control.at[:19]}",
        why=control.suspended,
        fix="mend the cause, and resume the table by streamtables resume or Lake.controls.resume"
        + "; a changed definition resumes it, too" * bool(control.definition),
    )


def _fingerprint(table: StreamTable) -> str:
    about = (table.query, table.mode, table.dialect, table.session_timezone, repr(table.views))
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat()
