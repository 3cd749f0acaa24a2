"""`Controls`: the controls of the tables below one root.

Each is a document, ``<root>/_streamtables/controls/<name>``: a table that was never created has no
log to store it in. A table that never failed and was never suspended has none. No refresh depends
on it for its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote, unquote

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import View
from dagster_streamtables.errors import DamagedTable, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.errors.translate import last_word
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.control import Control, fingerprint
from dagster_streamtables.runtime.observe.control_files import ControlFiles, unreadable
from dagster_streamtables.runtime.observe.log_heads import answers
from dagster_streamtables.runtime.refresh.prepare import with_views
from dagster_streamtables.runtime.storage.documents import SHORT, Documents

_KEY = re.compile(r"[A-Za-z0-9_.=-]+")


class Controls:
    """The controls of the tables below one root. Threads and processes may share them."""

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
        with _told(name):
            return self._documents.find(_key(name)) or Control()

    def of(self, table: StreamTable) -> Control:
        """The control of a declared table, without errors of another definition."""
        return self.read(table.name).under(fingerprint(with_views(table, self._views)))

    def names(self) -> list[str]:
        """The tables that failed or were suspended at any time, sorted."""
        return sorted({*map(_name, self._documents.names()), *self._files.names()})

    def snapshot(self) -> Controls:
        """The present controls of all tables, for many reads: two listings find those that have
        one, and only those are read."""
        return _Snapshot(self)

    def suspend(self, name: str, why: str = "") -> None:
        """Suspend a table until it is resumed.

        If a person had suspended it before, keep that time and, without a new reason, that reason.

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

        def resumed(known: Control) -> Control:
            nonlocal was
            was = known
            return known.resumed if known.speaks else known

        self._change(name, resumed)
        return bool(was.suspended)

    def copy(self, name: str, to: str) -> None:
        """Give a table the control of another one. A suspension of its own by a person stays.

        Raises:
            ConflictingCommit: Other processes kept changing the control.
        """
        known = self.read(name)
        if known != Control():
            self._change(to, lambda own: known.with_hold_of(own))

    def forget(self, name: str) -> bool:
        """Delete the control of a table. Returns whether there was one."""
        with _told(name):
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
        with last_word():
            before = self.read(table.name)
        before.under(fingerprint(table)).require_active()
        try:
            yield
        except Exception as error:
            note = partial(Control.after, error=error, table=table, by_hand=by_hand)
            self._note(table.name, note)
            raise
        # Errors of an earlier definition are reset, too: a reader may not know the definition.
        if before.speaks:
            self._note(table.name, lambda known: known.mended)

    def _note(self, name: str, change: Callable[[Control], Control]) -> None:
        """Record how an attempt ended. A full disk must not hide its error, nor fail a refresh that
        has committed."""
        try:
            self._change(name, change)
        except (StreamTablesError, OSError, DeltaError) as error:
            logger.warning("how a refresh of %s ended is not recorded: %s", name, error)

    def _change(self, name: str, change: Callable[[Control], Control]) -> None:
        def changed(known: Control | None) -> Control | None:
            after = change(known or Control())
            return known if known is None and after == Control() else after

        with _told(name):
            self._documents.change(_key(name), changed)


class _Snapshot(Controls):
    """Controls as they were at one moment; changes go to the real ones."""

    def __init__(self, controls: Controls) -> None:
        super().__init__(controls._root, controls._options, controls._views)

        def found(name: str) -> tuple[str, Control | StreamTablesError]:
            try:
                return name, controls.read(name)
            except StreamTablesError as error:
                return name, error

        self._found = dict(answers(found, controls.names(), remote=is_remote(self._root)))

    def names(self) -> list[str]:
        return list(self._found)

    def read(self, name: str) -> Control:
        found = self._found.get(name) or Control()
        if isinstance(found, StreamTablesError):
            raise found
        return found


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Name the table in an error about its control.

    Raises:
        DamagedTable: The control cannot be read.
    """
    try:
        yield
    except DamagedTable as error:
        raise unreadable(error.where, error.why).about(name) from error


def _key(name: str) -> str:
    """The folder of a table's ledger, whose name has only letters that no store and no library
    escapes in a path.

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
