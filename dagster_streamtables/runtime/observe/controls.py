"""Whether a stream table may be refreshed: its consecutive errors, and its suspension.

An error that only a person can fix recurs at each attempt, so after a number of them the table is
suspended until a person resumes it or changes its definition. Temporary failures (a lost race, a
machine without memory) do not count, nor do attempts by hand: a person who tries a query three
times is there to fix it.

Each `Control` is a document, ``<root>/_streamtables/controls/<name>``: a table that was never
created has no log to store it in. A table that never failed and was never suspended has none. No
refresh depends on it for its rows.

Versions before the ledgers stored a file each, ``<root>/_streamtables/<name>.json``. It counts
until the table's control has a ledger, and then remains: a process of such a version, during an
upgrade, still finds the suspension.
"""

from __future__ import annotations

import hashlib
import json
import re
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
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.delta.arrow import fs
from dagster_streamtables.runtime.delta.table_locations import files_below, is_remote, require_root
from dagster_streamtables.runtime.errors.environment_errors import machine_problem
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import (
    is_lasting,
    translate_final_errors,
    translate_root_errors,
)
from dagster_streamtables.runtime.model.stream_table import OnFull, StreamTable
from dagster_streamtables.runtime.observe.latest_versions import answers
from dagster_streamtables.runtime.refresh.refresh_job import with_views
from dagster_streamtables.runtime.storage.documents import FOLDER, SHORT, Documents

_LONGEST = 200
_REMEMBERED = 20


@dataclass(frozen=True)
class FailedRefresh:
    at: str
    """The time, in ISO 8601."""
    error: str
    """The error message, on one line."""
    lasting: bool
    """Whether it counts towards suspension: only a person can fix it, and nobody tried by hand."""


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
    def suspension(self) -> str:
        """Why it is suspended; empty if it is not."""
        return self.held or self.gave_up

    @property
    def suspended_at(self) -> str:
        return self.held_at if self.held else self.at

    @property
    def speaks(self) -> bool:
        """Whether it contains errors or a suspension that still apply."""
        return bool(self.suspension or self.error)

    @property
    def without_errors(self) -> Control:
        """The control after a successful attempt."""
        return Control(
            held=self.held, held_at=self.held_at, failures=self.failures, failed=self.failed
        )

    def suspend(self, why: str) -> Control:
        """The control after a person suspended it; a suspension by a person keeps its time and,
        without a new reason, its reason."""
        said = why or self.held or "suspended by hand"
        return replace(self, held=said, held_at=self.held_at or _now())

    def after(self, error: Exception, table: StreamTable, *, by_hand: bool = False) -> Control:
        """The control after a failed attempt, by a person or not."""
        here = self.under(fingerprint(table))
        lasting = is_lasting(error) and not by_hand
        failure = FailedRefresh(_now(), _in_a_line(error), lasting)
        counted = replace(
            here,
            errors=here.errors + failure.lasting,
            error=failure.error,
            at=failure.at,
            definition=fingerprint(table),
            failures=(failure, *here.failures)[:_REMEMBERED],
            failed=here.failed + 1,
        )
        if not (failure.lasting and 0 < table.max_consecutive_errors <= counted.errors):
            return counted
        why = f"it failed {counted.errors} times in a row: {failure.error}"
        return replace(counted, gave_up=why)

    def under(self, definition: str) -> Control:
        """The control without errors of another definition."""
        return self if self.definition in ("", definition) else self.without_errors

    def require_active(self) -> None:
        """
        Raises:
            SuspendedTable: It is suspended.
        """
        if self.suspension:
            raise SuspendedTable(
                f"suspended since {self.suspended_at[:19]}",
                why=self.suspension,
                fix="fix the cause, and resume the table by streamtables resume or "
                "Lake.controls.resume" + "; a changed definition also resumes it" * (not self.held),
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Control:
        """
        Raises:
            ValueError: The value is not a control; likewise TypeError, KeyError.
        """
        known = dict(values)
        failures = tuple(FailedRefresh(**each) for each in known.pop("failures"))
        return cls(**known, failures=failures)


def fingerprint(table: StreamTable) -> str:
    about = (table.query, table.mode, table.dialect, table.session_timezone, repr(table.views))
    if table.on_full is not OnFull.ALLOW:
        about = (*about, table.on_full)
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()[:16]


def _in_a_line(error: Exception) -> str:
    """What, and the first line of why: Spark's reasons have many lines."""
    if not isinstance(error, StreamTablesError):
        return f"{type(error).__name__}: {first_line(str(error))[:_LONGEST]}"
    why = error.why.strip().partition("\n")[0][:_LONGEST]
    return f"{error.what}: {why}" if why else error.what


def _now() -> str:
    return datetime.now(UTC).isoformat()


_JSON = ".json"


class ControlFiles:
    """The controls that versions before the ledgers stored below one root."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root, self._options = root.rstrip("/"), storage_options
        self._missing: set[str] = set()

    def names(self) -> list[str]:
        if not self._exists:
            return []
        with translate_root_errors(self._root):
            found = self._files.get_file_info(fs.FileSelector(FOLDER, allow_not_found=True))
        files = (each.base_name for each in found)
        return [unquote(each.removesuffix(_JSON)) for each in files if each.endswith(_JSON)]

    def find(self, name: str) -> Control | None:
        """The control in the file of a table; None if missing.

        Raises:
            DamagedTable: It cannot be read.
        """
        content = self._read(name)
        try:
            return None if content is None else Control.from_json(json.loads(content))
        except (ValueError, TypeError, KeyError) as error:
            raise unreadable(self._place(name), error) from error

    def exists(self, name: str) -> bool:
        """Whether a table has a file, even one that cannot be read."""
        return self._read(name) is not None

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(_file(name))

    def _read(self, name: str) -> bytes | None:
        if name in self._missing or not self._exists:
            return None
        try:
            with self._files.open_input_file(_file(name)) as stream:
                return stream.read()
        except FileNotFoundError:
            if is_remote(self._root):  # nobody writes such files any more
                self._missing.add(name)
            return None
        except (OSError, DeltaError) as error:
            require_root(self._root, self._options)  # its message is better
            raise machine_problem(error) or unreadable(self._place(name), error) from error

    def _place(self, name: str) -> str:
        return f"{self._root}/{_file(name)}"

    @property
    def _exists(self) -> bool:
        return is_remote(self._root) or Path(self._root).exists()

    @cached_property
    def _files(self) -> Any:
        return files_below(self._root, self._options)


def unreadable(place: str, why: object) -> DamagedTable:
    """The error of a control; its place is the file, or the folder of the ledger."""
    return DamagedTable(
        "the stored errors of the table cannot be read",
        where=place,
        why=str(why),
        fix="delete that file or folder; if the table was suspended, it is refreshed again",
    )


def _file(name: str) -> str:
    """The file of a table, always in this folder: even `..` is part of a file name.

    >>> _file("mart.revenue"), _file("../x")
    ('_streamtables/mart.revenue.json', '_streamtables/..%2Fx.json')
    """
    return f"{FOLDER}/{quote(name, safe=' ')}{_JSON}"


_KEY = re.compile(r"[A-Za-z0-9_.=-]+")


class Controls:
    """The controls of the tables below one root. Threads and processes may share them."""

    def __init__(
        self,
        root: str,
        storage_options: Mapping[str, str] | None = None,
        views: Iterable[View] = (),
    ) -> None:
        """Args: views: Part of the fingerprint of every table that names them."""
        self._root, self._options, self._views = root, storage_options, tuple(views)
        self._files = ControlFiles(root, storage_options)
        self._documents = Documents(
            root, "controls", Control, storage_options, noun="control", kept=SHORT, name=_KEY,
            earlier=lambda key: self._files.find(_name(key)),
        )  # fmt: skip

    def read(self, name: str) -> Control:
        """The control of a table.

        Raises:
            DamagedTable: It cannot be read.
        """
        with _name_in_errors(name):
            return self._documents.find(_key(name)) or Control()

    def of(self, table: StreamTable) -> Control:
        """The control of a declared table, without errors of another definition."""
        return self.read(table.name).under(fingerprint(with_views(table, self._views)))

    def names(self) -> list[str]:
        """The tables that failed or were suspended at any time, sorted."""
        return sorted({*map(_name, self._documents.names()), *self._files.names()})

    def snapshot(self) -> Controls:
        """The present controls of all tables, for many reads: only existing ones are read."""
        return _Snapshot(self)

    def suspend(self, name: str, why: str = "") -> None:
        """Suspend a table until it is resumed; see `Control.suspend`.

        Raises:
            ConflictingCommit: Other processes kept changing the control.
        """
        self._change(name, lambda known: known.suspend(why))

    def resume(self, name: str) -> bool:
        """End a suspension and reset the errors. Returns whether the table was suspended.

        Raises:
            ConflictingCommit: Other processes kept changing the control.
        """
        was = Control()

        def lift_suspension(known: Control) -> Control:
            nonlocal was
            was = known
            if not known.speaks:
                return known
            return replace(known.without_errors, held="", held_at="")

        self._change(name, lift_suspension)
        return bool(was.suspension)

    def copy(self, name: str, to: str) -> None:
        """Give a table the control of another one. A suspension of its own by a person stays.

        Raises:
            ConflictingCommit: Other processes kept changing the control.
        """
        known = self.read(name)

        def keep_hold(own: Control) -> Control:
            return replace(known, held=own.held, held_at=own.held_at) if own.held else known

        if known != Control():
            self._change(to, keep_hold)

    def forget(self, name: str) -> bool:
        """Delete the control of a table. Returns whether there was one."""
        with _name_in_errors(name):
            earlier = self._files.exists(name)
            # First: who has read the file must find that it no longer counts.
            known = self._documents.delete(_key(name), earlier=earlier)
            if earlier:
                self._files.delete(name)
        return known

    @contextmanager
    def watching(self, table: StreamTable, *, by_hand: bool = False) -> Iterator[None]:
        """Record how one attempt ends, by a person or not.

        Raises:
            SuspendedTable: The table is suspended.
        """
        table = with_views(table, self._views)
        with translate_final_errors():
            before = self.read(table.name)
        before.under(fingerprint(table)).require_active()
        try:
            yield
        except Exception as error:
            note = partial(Control.after, error=error, table=table, by_hand=by_hand)
            self._note(table.name, note)
            raise
        # Errors of an earlier definition are also reset: a reader may not know the definition.
        if before.speaks:
            self._note(table.name, lambda known: known.without_errors)

    def _note(self, name: str, change: Callable[[Control], Control]) -> None:
        """Record how an attempt ended. A full disk must not hide its error, nor fail a refresh that
        has committed."""
        try:
            self._change(name, change)
        except (StreamTablesError, OSError, DeltaError) as error:
            logger.warning("how a refresh of %s ended is not recorded: %s", name, error)

    def _change(self, name: str, change: Callable[[Control], Control]) -> None:
        def apply_change(known: Control | None) -> Control | None:
            after = change(known or Control())
            return known if known is None and after == Control() else after

        with _name_in_errors(name):
            self._documents.change(_key(name), apply_change)


class _Snapshot(Controls):
    """Controls as they were at one moment; changes go to the real ones."""

    def __init__(self, controls: Controls) -> None:
        super().__init__(controls._root, controls._options, controls._views)

        def read_one(name: str) -> tuple[str, Control | StreamTablesError]:
            try:
                return name, controls.read(name)
            except StreamTablesError as error:
                return name, error

        self._found = dict(answers(read_one, controls.names(), remote=is_remote(self._root)))

    def names(self) -> list[str]:
        return list(self._found)

    def read(self, name: str) -> Control:
        found = self._found.get(name) or Control()
        if isinstance(found, StreamTablesError):
            raise found
        return found


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Name the table in an error about its control.

    Raises:
        DamagedTable: The control cannot be read.
    """
    try:
        yield
    except DamagedTable as error:
        raise unreadable(error.where, error.why).about(name) from error


def _key(name: str) -> str:
    """The folder of a table's ledger: only letters that no store or library escapes in a path.

    >>> _key("mart.revenue"), _key(".."), _key("a/b~ü"), _key("")
    ('mart.revenue', '=2E.', 'a=2Fb=7E=C3=BC', '=')
    """
    letters = quote(name, safe="").replace("~", "%7E")
    return re.sub(r"^\.", "%2E", letters).replace("%", "=") or "="


def _name(key: str) -> str:
    """The table of a ledger's folder.

    >>> _name("a=2Fb=7E=C3=BC"), _name("=")
    ('a/b~ü', '')
    """
    return "" if key == "=" else unquote(key.replace("=", "%"))
