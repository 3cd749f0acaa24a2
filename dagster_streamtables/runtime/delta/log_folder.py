"""The files of one table's log, on this machine or in an object store."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from deltalake.exceptions import TableNotFoundError

from dagster_streamtables.runtime.delta.arrow import fs
from dagster_streamtables.runtime.delta.table_locations import (
    FOLDER,
    checkpoint_of,
    commit_file,
    files_below,
    is_remote,
    log_folder,
    version_of,
)
from dagster_streamtables.runtime.delta.table_schema import digest

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Mark(NamedTuple):
    """Distinguishes the file of a commit from one of the same name, in a table that was dropped and
    recreated, or restored from a copy."""

    file: int
    """The inode; 0 in an object store, which has none."""
    changed: int
    size: int


class LocalLog:
    """The log of a table on this machine."""

    def __init__(self, location: str) -> None:
        self._location = location

    def newest(self) -> int | None:
        """The newest version; None if there is no log."""
        try:
            names = os.listdir(log_folder(self._location))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return None
        versions = (version_of(name) for name in names)
        return max((each for each in versions if each is not None), default=None)

    def mark(self, version: int) -> Mark | None:
        """The mark of a commit; None if it was deleted or does not exist yet."""
        try:
            # For thousands of calls, creating a `Path` takes longer than the `stat`.
            found = os.stat(f"{self._location}/{commit_file(version)}")  # noqa: PTH116
        except FileNotFoundError:
            return None
        return Mark(found.st_ino, found.st_mtime_ns, found.st_size)

    identity = mark
    """What tells a commit from one of another table, or of a restored copy, in its place."""

    def has(self, version: int) -> bool:
        return self.mark(version) is not None

    def begins_before(self, version: int) -> bool:
        """Whether the log has the beginning of a version: a checkpoint, or commit 0.

        Without either, delta-rs takes the files of the remaining commits for the whole table, if
        one of them has the schema (1.6.6).
        """
        if self.has(0):
            return True
        return _has_checkpoint(os.listdir(log_folder(self._location)), version)  # noqa: PTH208

    def read(self, version: int) -> bytes | None:
        """The content of a commit; None if it was deleted or does not exist yet."""
        try:
            return (Path(self._location) / commit_file(version)).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, version: int, content: bytes) -> bool:
        """Write a commit, whole or not at all, as delta-rs does, but without listing the log.

        Returns False, without writing, if the file system has no hard links.

        Raises:
            FileExistsError: The version exists.
        """
        written = Path(log_folder(self._location)) / f"_commit_{uuid.uuid4().hex}.json.tmp"
        try:
            written.write_bytes(content)
            (Path(self._location) / commit_file(version)).hardlink_to(written)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        finally:
            written.unlink(missing_ok=True)
        return True


class RemoteLog:
    """The log of a table in an object store, with the methods of `LocalLog`."""

    def __init__(
        self, location: str, options: Mapping[str, str] | None = None, files: Any = None
    ) -> None:
        """Args: files: The table's folder as a file system of pyarrow; None to open one."""
        self._location = location
        self._options = dict(options or {})
        self._given = files

    def newest(self) -> int | None:
        found = self.list_newest()
        return None if found is None else found[0]

    def list_newest(self) -> tuple[int, Mark] | None:
        """The newest version and its mark, by one listing of the whole log; None if missing."""
        try:
            files = self._files.get_file_info(fs.FileSelector(FOLDER, allow_not_found=True))
        except TableNotFoundError:  # of a folder that a URI of this machine names
            return None
        versions = ((version_of(each.base_name), each) for each in files)
        return max(
            ((v, Mark(0, each.mtime_ns, each.size)) for v, each in versions if v is not None),
            default=None,
        )

    def mark(self, version: int) -> Mark | None:
        [found] = self._files.get_file_info([commit_file(version)])
        return None if found.type.name == "NotFound" else Mark(0, found.mtime_ns, found.size)

    def identity(self, version: int) -> str | None:
        """The digest of a commit: the times of a store are whole seconds, so the mark may be that
        of another commit of the same size; None if it was deleted or does not exist yet."""
        content = self.read(version)
        return None if content is None else digest(content)

    def has(self, version: int) -> bool:
        """Whether a commit exists. One request; `mark` sends two more for one that does not."""
        try:
            self._files.open_input_file(commit_file(version)).close()
        except FileNotFoundError:
            return False
        return True

    def begins_before(self, version: int) -> bool:
        if self.has(0):
            return True
        listed = self._files.get_file_info(fs.FileSelector(FOLDER))
        return _has_checkpoint([each.base_name for each in listed], version)

    def read(self, version: int) -> bytes | None:
        try:
            with self._files.open_input_file(commit_file(version)) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    @cached_property
    def _files(self) -> Any:
        return self._given or files_below(self._location, self._options)


def _has_checkpoint(names: Iterable[str], version: int) -> bool:
    return any(each is not None and each <= version for each in map(checkpoint_of, names))


def log_at_place(location: str, options: Mapping[str, str] | None = None) -> LocalLog | RemoteLog:
    return RemoteLog(location, options) if is_remote(location) else LocalLog(location)
