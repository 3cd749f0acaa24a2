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
"""Below the root: what is kept beside the tables."""
_LONGEST = 200
_REMEMBERED = 20


@dataclass(frozen=True)
class FailedRefresh:
    """One attempt to refresh a table that failed."""

    at: str
    """When, in ISO 8601."""
    error: str
    """In a line."""
    lasting: bool
    """Whether only a person can mend it, so that it counts towards suspension."""


@dataclass(frozen=True)
class Control:
    """What is known of the attempts to refresh a table.

    What a person said (`held`) and what the attempts did are fields of their own: neither a refresh
    that ends nor a changed definition undoes what a person said.
    """

    errors: int = 0
    """In a row, of those that only a person can mend."""
    error: str = ""
    """The error of the last attempt, in a line; empty where that went well."""
    at: str = ""
    """When that was, in ISO 8601."""
    definition: str = ""
    """Whose errors they are."""
    gave_up: str = ""
    """Why it stopped by itself; empty where it did not."""
    held: str = ""
    """Why a person suspended it; empty where nobody did."""
    held_at: str = ""
    """Since when, in ISO 8601."""
    failures: tuple[FailedRefresh, ...] = ()
    """The newest attempts that failed, newest first, also those of before it went well again."""
    failed: int = 0
    """How many attempts failed in the table's whole life."""

    @property
    def suspended(self) -> str:
        """Why it is left alone; empty where it is not."""
        return self.held or self.gave_up

    @property
    def suspended_at(self) -> str:
        return self.held_at if self.held else self.at

    @property
    def speaks(self) -> bool:
        """Whether it says anything of how the table is now."""
        return bool(self.suspended or self.error)

    @property
    def mended(self) -> Control:
        """After an attempt that went well."""
        return Control(
            held=self.held, held_at=self.held_at, failures=self.failures, failed=self.failed
        )

    def after(self, error: Exception, table: StreamTable) -> Control:
        """After an attempt that failed."""
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
        """As far as it is about a definition: the errors of another one do not count."""
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
            root: As for `Lake`; and `storage_options` and `views`.
            storage_options: What delta-rs needs to reach an object store.
            views: They are part of what a table is, whoever asks with the declaration alone.
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
        """The control of a table as it is declared: errors of another definition do not count."""
        return self.read(table.name).under(_fingerprint(with_views(table, self._views)))

    def names(self) -> list[str]:
        """The tables of which something is known, sorted."""
        import pyarrow.fs

        if self._local is not None:
            found = [path.name for path in self._local.glob("*.json")]
        else:
            folder = pyarrow.fs.FileSelector(FOLDER, allow_not_found=True)
            found = [each.base_name for each in self._remote.get_file_info(folder)]
        names = (each.removesuffix(".json") for each in found if each.endswith(".json"))
        return sorted(map(unquote, names))

    def suspend(self, name: str, why: str = "") -> None:
        """Leave a table alone until it is resumed.

        Where somebody suspended it before, that time stands and, without a new reason, theirs.
        """
        was = self.read(name)
        said = why or was.held or "suspended by hand"
        self._write(name, replace(was, held=said, held_at=was.held_at or _now()))

    def resume(self, name: str) -> bool:
        """Let it be refreshed again, its errors forgotten; whether it was suspended."""
        was = self.read(name)
        if was.speaks:
            self._write(name, replace(was.mended, held="", held_at=""))
        return bool(was.suspended)

    def forget(self, name: str) -> bool:
        """Delete what is known of a table; whether anything was."""
        known = self._read(name) is not None
        if known and self._local is not None:
            (self._local / _file(name)).unlink(missing_ok=True)
        elif known:
            self._remote.delete_file(f"{FOLDER}/{_file(name)}")
        return known

    @contextmanager
    def watching(self, table: StreamTable) -> Iterator[None]:
        """Note how one attempt ends.

        Raises:
            SuspendedTable: The table is left alone.
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
        # Errors of an earlier definition, too: they are mended, whoever looks without knowing it.
        if before.speaks:
            self._note(table.name, lambda known: known.mended)

    def _note(self, name: str, change: Callable[[Control], Control]) -> None:
        """Change what is known by now: somebody may have suspended the table meanwhile."""
        # A full disk must not hide the error, nor make one of a refresh that is committed.
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
            require_root(self._root, self._options)  # which has the better words
            raise

    def _write(self, name: str, control: Control) -> None:
        content = json.dumps(asdict(control)).encode()
        if self._local is None:
            # What does not fit a buffer, pyarrow hands to delta-rs as an object that it refuses.
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
    """In the one folder, whatever somebody gives for a name: `..` is one of a file here.

    >>> _file("mart.revenue"), _file("../x")
    ('mart.revenue.json', '..%2Fx.json')
    """
    return quote(name, safe=" ") + ".json"


def _from_json(content: bytes) -> Control:
    values = json.loads(content)
    failures = tuple(FailedRefresh(**each) for each in values.pop("failures"))
    return Control(**values, failures=failures)


def _in_a_line(error: Exception) -> str:
    """What, and the beginning of why: Spark's reasons have many lines."""
    if not isinstance(error, StreamTablesError):
        return f"{type(error).__name__}: {first_line(str(error))[:_LONGEST]}"
    why = error.why.strip().partition("\n")[0][:_LONGEST]
    return f"{error.what}: {why}" if why else error.what


def _suspended(control: Control) -> SuspendedTable:
    return SuspendedTable(
        f"suspended since {control.suspended_at[:19]}",
        why=control.suspended,
        fix="mend the cause, and resume the table by streamtables resume or Lake.controls.resume"
        + "; a changed definition resumes it, too" * (not control.held),
    )


def _fingerprint(table: StreamTable) -> str:
    about = (table.query, table.mode, table.dialect, table.session_timezone, repr(table.views))
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat()
