"""Whether a stream table may be refreshed: its consecutive errors, and its suspension.

An error that only a person can fix recurs at each attempt, so after a number of them the table is
suspended until somebody resumes it or changes its definition. Temporary failures (a lost race, a
machine without memory) do not count.

The control is stored in ``<root>/_streamtables/<name>.json``: a table that was never created has no
log to store it in. No refresh depends on it for its rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import View
from dagster_streamtables.errors import DamagedTable, StreamTablesError, SuspendedTable
from dagster_streamtables.runtime.delta.names import files_below, is_remote, require_root
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.translate import last_word
from dagster_streamtables.runtime.errors.verdict import is_lasting
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.refresh.prepare import with_views

FOLDER = "_streamtables"
"""The folder below the root with the controls of all tables."""
_LONGEST = 200
_REMEMBERED = 20


@dataclass(frozen=True)
class FailedRefresh:
    """One failed attempt to refresh a table."""

    at: str
    """The time, in ISO 8601."""
    error: str
    """The error message, on one line."""
    lasting: bool
    """Whether only a person can fix it, so that it counts towards suspension."""


@dataclass(frozen=True)
class Control:
    """The recorded attempts to refresh a table, and its suspension.

    A suspension by a person (`held`) is separate from one by errors: neither a successful refresh
    nor a changed definition ends it.
    """

    errors: int = 0
    """Number of consecutive errors that only a person can fix."""
    error: str = ""
    """The last error message, on one line; empty if the last attempt succeeded."""
    at: str = ""
    """The time of the last error, in ISO 8601."""
    definition: str = ""
    """Fingerprint of the definition that caused the errors."""
    gave_up: str = ""
    """Why it was suspended after errors; empty if it was not."""
    held: str = ""
    """Why a person suspended it; empty if nobody did."""
    held_at: str = ""
    """The start of the suspension, in ISO 8601."""
    failures: tuple[FailedRefresh, ...] = ()
    """The newest failed attempts, newest first, including those before a successful refresh."""
    failed: int = 0
    """Number of failed attempts since the table was created."""

    @property
    def suspended(self) -> str:
        """Why it is suspended; empty if it is not."""
        return self.held or self.gave_up

    @property
    def suspended_at(self) -> str:
        return self.held_at if self.held else self.at

    @property
    def speaks(self) -> bool:
        """Whether it contains errors or a suspension that still apply."""
        return bool(self.suspended or self.error)

    @property
    def mended(self) -> Control:
        """The control after a successful attempt."""
        return Control(
            held=self.held, held_at=self.held_at, failures=self.failures, failed=self.failed
        )

    def after(self, error: Exception, table: StreamTable) -> Control:
        """The control after a failed attempt."""
        here = self.under(_fingerprint(table))
        failure = FailedRefresh(_now(), _in_a_line(error), is_lasting(error))
        counted = replace(
            here,
            errors=here.errors + failure.lasting,
            error=failure.error,
            at=failure.at,
            definition=_fingerprint(table),
            failures=(failure, *here.failures)[:_REMEMBERED],
            failed=here.failed + 1,
        )
        if not (failure.lasting and 0 < table.max_consecutive_errors <= counted.errors):
            return counted
        why = f"it failed {counted.errors} times in a row: {failure.error}"
        return replace(counted, gave_up=why)

    def under(self, definition: str) -> Control:
        """The control without errors of another definition."""
        return self if self.definition in ("", definition) else self.mended


class Controls:
    """The controls of the tables below one root."""

    def __init__(
        self,
        root: str,
        storage_options: Mapping[str, str] | None = None,
        views: Iterable[View] = (),
    ) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
            views: Part of the fingerprint of every table that names them.
        """
        self._root = root
        self._options = dict(storage_options or {})
        self._views = tuple(views)

    def read(self, name: str) -> Control:
        content = self._read(name)
        try:
            return Control() if content is None else _from_json(content)
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedTable(
                "what is known of the table's errors cannot be read",
                where=f"{self._root}/{FOLDER}/{_file(name)}",
                why=str(error),
                fix="delete the file; if the table was suspended, it is refreshed again",
            ).about(name) from error

    def of(self, table: StreamTable) -> Control:
        """The control of a declared table, without errors of another definition."""
        return self.read(table.name).under(_fingerprint(with_views(table, self._views)))

    def names(self) -> list[str]:
        """The tables that have a control, sorted."""
        import pyarrow.fs

        if self._local is not None:
            found = [path.name for path in self._local.glob("*.json")]
        else:
            folder = pyarrow.fs.FileSelector(FOLDER, allow_not_found=True)
            found = [each.base_name for each in self._remote.get_file_info(folder)]
        names = (each.removesuffix(".json") for each in found if each.endswith(".json"))
        return sorted(map(unquote, names))

    def suspend(self, name: str, why: str = "") -> None:
        """Suspend a table until it is resumed.

        If a person had suspended it before, keep that time and, without a new reason, that reason.
        """
        was = self.read(name)
        said = why or was.held or "suspended by hand"
        self._write(name, replace(was, held=said, held_at=was.held_at or _now()))

    def resume(self, name: str) -> bool:
        """End a suspension and reset the errors. Returns whether the table was suspended."""
        was = self.read(name)
        if was.speaks:
            self._write(name, replace(was.mended, held="", held_at=""))
        return bool(was.suspended)

    def forget(self, name: str) -> bool:
        """Delete the control of a table. Returns whether there was one."""
        known = self._read(name) is not None
        if known and self._local is not None:
            (self._local / _file(name)).unlink(missing_ok=True)
        elif known:
            self._remote.delete_file(f"{FOLDER}/{_file(name)}")
        return known

    @contextmanager
    def watching(self, table: StreamTable) -> Iterator[None]:
        """Record how one attempt ends.

        Raises:
            SuspendedTable: The table is suspended.
        """
        table = with_views(table, self._views)
        with last_word():
            before = self.read(table.name)
        control = before.under(_fingerprint(table))
        if control.suspended:
            raise _suspended(control)
        try:
            yield
        except Exception as error:
            self._note(table.name, partial(Control.after, error=error, table=table))
            raise
        # Errors of an earlier definition are reset, too: a reader may not know the definition.
        if before.speaks:
            self._note(table.name, lambda known: known.mended)

    def _note(self, name: str, change: Callable[[Control], Control]) -> None:
        """Change the stored control: somebody may have suspended the table meanwhile."""
        # A full disk must not hide the error, nor fail a refresh that has committed.
        with suppress(OSError, DamagedTable):
            self._write(name, change(self.read(name)))

    def _read(self, name: str) -> bytes | None:
        try:
            if self._local is not None:
                return (self._local / _file(name)).read_bytes()
            with self._remote.open_input_file(f"{FOLDER}/{_file(name)}") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except (OSError, DeltaError):
            require_root(self._root, self._options)  # its message is better
            raise

    def _write(self, name: str, control: Control) -> None:
        content = json.dumps(asdict(control)).encode()
        if self._local is None:
            # Without a large enough buffer, pyarrow passes an object that delta-rs refuses.
            path, size = f"{FOLDER}/{_file(name)}", len(content) + 1
            with self._remote.open_output_stream(path, buffer_size=size) as stream:
                stream.write(content)
            return
        self._local.mkdir(parents=True, exist_ok=True)
        new = self._local / f"{_file(name)}.{datetime.now(UTC).timestamp()}"
        try:
            new.write_bytes(content)
            new.replace(self._local / _file(name))
        finally:
            new.unlink(missing_ok=True)

    @property
    def _local(self) -> Path | None:
        return None if is_remote(self._root) else Path(self._root) / FOLDER

    @cached_property
    def _remote(self) -> Any:
        return files_below(self._root, self._options)


def _file(name: str) -> str:
    """The file of a table, always in this folder: even `..` is part of a file name.

    >>> _file("mart.revenue"), _file("../x")
    ('mart.revenue.json', '..%2Fx.json')
    """
    return quote(name, safe=" ") + ".json"


def _from_json(content: bytes) -> Control:
    values = json.loads(content)
    failures = tuple(FailedRefresh(**each) for each in values.pop("failures"))
    return Control(**values, failures=failures)


def _in_a_line(error: Exception) -> str:
    """What, and the first line of why: Spark's reasons have many lines."""
    if not isinstance(error, StreamTablesError):
        return f"{type(error).__name__}: {first_line(str(error))[:_LONGEST]}"
    why = error.why.strip().partition("\n")[0][:_LONGEST]
    return f"{error.what}: {why}" if why else error.what


def _suspended(control: Control) -> SuspendedTable:
    return SuspendedTable(
        f"suspended since {control.suspended_at[:19]}",
        why=control.suspended,
        fix="fix the cause, and resume the table by streamtables resume or Lake.controls.resume"
        + "; a changed definition resumes it, too" * (not control.held),
    )


def _fingerprint(table: StreamTable) -> str:
    about = (table.query, table.mode, table.dialect, table.session_timezone, repr(table.views))
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat()
