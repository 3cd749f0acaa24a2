"""The locations of tables, and the names of the files in their logs.

A name is a folder under one root, ``<root>/<schema>/<table>``, as in dagster-deltalake, whose IO
manager and resource read the same tables. The default schema is ``public``, as there. A path
(``delta.`/data/orders` ``) stays a path, and a name that begins as those of a catalog is where the
catalog says. Only this module depends on the layout.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dagster_streamtables.compiler import same_but_case
from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.runtime.catalogs.external_catalogs import ExternalCatalogs
from dagster_streamtables.runtime.delta.arrow import fs
from dagster_streamtables.runtime.errors.error_translation import translate_root_errors
from dagster_streamtables.runtime.errors.table_errors import not_in_catalog

DEFAULT_SCHEMA = "public"
_PATH = re.compile(r"delta\.`(?P<path>.+)`", re.IGNORECASE)
_PART = re.compile(r"[^/\\\x00-\x1f]+")
"""A part of a name, which leads exactly one folder down."""


@dataclass(frozen=True)
class TableNames:
    root: str
    """A folder, or the URI of one in an object store."""
    catalogs: ExternalCatalogs = field(default_factory=ExternalCatalogs, compare=False)

    def find(self, name: str) -> str | None:
        """The location of a table; None if its catalog does not know it.

        Raises:
            SourceProblem: It cannot be read; see `ExternalCatalog.find`, also for other errors.
        """
        if _PATH.fullmatch(name) or not self.catalogs.has(name):
            return self.own_location(name)
        table = self.catalogs.find(name)
        return None if table is None else table.location

    def location(self, name: str) -> str:
        """As `find`.

        Raises:
            MissingSource: The catalog of the name does not know it.
        """
        place = self.find(name)
        if place is None:
            raise not_in_catalog(name)
        return place

    def own_location(self, name: str) -> str:
        """The path or URI below the root that a name means, unless it is a path or a name of a
        catalog.

        >>> lake = TableNames("/lake")
        >>> lake.own_location("sales.orders"), lake.own_location("orders")
        ('/lake/sales/orders', '/lake/public/orders')
        >>> lake.own_location("delta.`/x/y`")
        '/x/y'

        Raises:
            InvalidDefinition: A part of the name is not the name of a folder.
        """
        path = _PATH.fullmatch(name)
        if path:
            return path["path"]
        parts = name.split(".")
        if not all(map(_PART.fullmatch, parts)):
            raise InvalidDefinition(
                f'"{name}" is not a valid table name',
                why="each part between its dots is the name of a folder below the root",
                fix="name the folders, joined by dots; a table elsewhere by its path, "
                "as in delta.`/data/orders`",
            )
        if len(parts) == 1:
            parts = [DEFAULT_SCHEMA, *parts]
        return "/".join([self.root.rstrip("/"), *parts])

    def tables(self, storage_options: Mapping[str, str] | None = None) -> Iterator[str]:
        """The names of the Delta tables below the root, at any depth; none if it does not exist.

        Raises:
            EnvironmentProblem: The root cannot be read; likewise `alike` and `near`.
        """
        if not is_remote(self.root) and not Path(self.root).exists():
            return
        with translate_root_errors(self.root):
            yield from _tables(files_below(self.root, storage_options), ())

    def alike(self, name: str, storage_options: Mapping[str, str] | None = None) -> list[str]:
        """The names of the Delta tables that are the same but for their case, sorted."""
        if _PATH.fullmatch(name) or self.catalogs.has(name):
            return []
        parts = name.split(".")
        whole = [DEFAULT_SCHEMA, *parts] if len(parts) == 1 else parts
        found: list[list[str]] = [[]]
        for part in whole:
            found = [
                [*above, folder]
                for above in found
                for folder in folders_in(self.root, "/".join(above), storage_options)
                if same_but_case(folder, part)
            ]
        folders = (
            p for p in found if is_table(folders_in(self.root, "/".join(p), storage_options))
        )
        return sorted(".".join(p[-len(parts) :]) for p in folders)

    def near(
        self,
        name: str,
        storage_options: Mapping[str, str] | None = None,
        more: Iterable[str] = (),
    ) -> list[str]:
        """Up to three tables that a wrong name may mean, the likeliest first.

        In an object store, only tables of the same schema, which one request lists. `more` are
        names of tables that do not exist yet.
        """
        if _PATH.fullmatch(name) or self.catalogs.has(name):
            return []
        *above, last = name.split(".")
        if is_remote(self.root):
            folders = folders_in(self.root, "/".join(above or [DEFAULT_SCHEMA]), storage_options)
            known = [".".join([*above, each]) for each in folders]
        else:
            known = list(self.tables(storage_options))
        known = sorted({*known, *more} - {name})
        same = [each for each in known if each.rpartition(".")[2] == last]
        return list(dict.fromkeys([*same, *get_close_matches(name, known)]))[:3]


def is_remote(root: str) -> bool:
    return "://" in root


def require_root(root: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Check that a root exists and can be read.

    Raises:
        EnvironmentProblem: It does not exist, is not a folder, or cannot be read.
    """
    if not is_remote(root) and not Path(root).exists():
        raise EnvironmentProblem(
            f'there is no folder "{root}"',
            why="the tables of a root are folders below it",
            fix="correct the root (--root, STREAMTABLES_ROOT), or create the folder if it is new",
        )
    with translate_root_errors(root):
        if is_remote(root):
            selector = fs.FileSelector("", allow_not_found=True)
            files_below(root, storage_options).get_file_info(selector)
        else:
            next(Path(root).iterdir(), None)


def files_below(place: str, storage_options: Mapping[str, str] | None) -> Any:
    """A file system of pyarrow whose root is a folder or URI."""
    from deltalake.fs import DeltaStorageHandler

    if not is_remote(place):
        return fs.SubTreeFileSystem(place, fs.LocalFileSystem())
    return fs.PyFileSystem(DeltaStorageHandler(place, dict(storage_options or {})))


def folders_in(root: str, path: str, storage_options: Mapping[str, str] | None) -> list[str]:
    """The names of the folders in a folder below a root; none if it does not exist.

    Raises:
        EnvironmentProblem: The root cannot be read.
    """
    if not is_remote(root) and not Path(root).exists():
        return []
    with translate_root_errors(root):
        selector = fs.FileSelector(path, allow_not_found=True)
        listed = files_below(root, storage_options).get_file_info(selector)
    return [each.base_name for each in listed if each.type is fs.FileType.Directory]


def _tables(files: Any, parts: tuple[str, ...]) -> Iterator[str]:
    selector = fs.FileSelector("/".join(parts), allow_not_found=True)
    listed = files.get_file_info(selector)
    folders = [each.base_name for each in listed if each.type is fs.FileType.Directory]
    if is_table(folders):
        short = len(parts) == 2 and parts[0] == DEFAULT_SCHEMA
        yield parts[1] if short else ".".join(parts)
        return
    for folder in folders:
        if not folder.startswith(("_", ".")):  # controls, and tables that are being deleted
            yield from _tables(files, (*parts, folder))


FOLDER = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"
_DIGITS = 20


def log_folder(location: str) -> str:
    return f"{location}/{FOLDER}"


def commit_file(version: int) -> str:
    """The file of a commit, relative to the table.

    >>> commit_file(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:0{_DIGITS}d}.json"


def version_of(name: str) -> int | None:
    """The version of a commit's file in the log; None for any other file.

    >>> version_of("00000000000000000007.json"), version_of("00000000000000000007.crc")
    (7, None)
    """
    number, rest = name[:_DIGITS], name[_DIGITS:]
    return int(number) if rest == ".json" and number.isdigit() else None


def checkpoint_of(name: str) -> int | None:
    """The version of a checkpoint, or of a part of one; None for any other file of the log.

    >>> checkpoint_of("00000000000000000007.checkpoint.parquet"), checkpoint_of("_last_checkpoint")
    (7, None)
    """
    number, rest = name[:_DIGITS], name[_DIGITS:]
    return int(number) if rest.startswith(".checkpoint.") and number.isdigit() else None


def is_table(folders: Collection[str]) -> bool:
    """Whether a folder with these subfolders is a Delta table."""
    return FOLDER in folders


def in_order_of_deletion(paths: Iterable[str]) -> list[str]:
    """The files of a table, beginning with the newest commit: a concurrent reader finds an older
    version, and later no table.

    >>> in_order_of_deletion(["a.parquet", commit_file(0), commit_file(1)])[-2:]
    ['_delta_log/00000000000000000000.json', 'a.parquet']
    """
    files = list(paths)
    log = {path for path in files if path.lstrip("/").startswith(f"{FOLDER}/")}
    return [*sorted(log, reverse=True), *(path for path in files if path not in log)]
