"""`Reload`: new definitions when their files change; the last good ones stay in use meanwhile.

`reimport` imports the Python modules of a project again.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.worker.workload import Workload

T = TypeVar("T")
_alone = threading.Lock()
"""All threads of a process share the imported modules."""
_SUFFIXES = (".py", ".sql", ".yaml", ".yml")
_LEFT_OUT = {"__pycache__", "node_modules", "site-packages"}
_MOST = 20_000
"""Maximum number of files to look at. A folder with more holds other things than definitions."""

Stamp = tuple[str, int, int]


class Reload:
    """Looks at the files in its own thread, and loads there, so that the worker does not wait."""

    def __init__(
        self,
        first: Workload,
        load: Callable[[], Workload],
        folders: Iterable[Path],
        every: float = 1.0,
        beside: Callable[[], Iterable[Stamp]] = tuple,
    ) -> None:
        """
        Args:
            first: The present definitions.
            load: Loads them again.
            folders: Where their files are; the folders of files that declare tables are added.
            every: Seconds between two looks.
            beside: What else changes with the definitions.
        """
        self.first = self._driven = first
        self._load, self._every, self._beside = load, every, beside
        self._folders = {*folders}
        self._new: Workload | None = None
        self.error = ""
        """Why the present files cannot be loaded, on one line; empty if they were."""
        self._seen = self._stamps()
        self._end = threading.Event()

    def start(self) -> Reload:
        threading.Thread(target=self._watch, name="definitions", daemon=True).start()
        return self

    def take(self) -> Workload | None:
        """New definitions, once; None if they have not changed."""
        new, self._new = self._new, None
        return new

    def look(self) -> bool:
        """Load again if the files changed, and do not still change. Returns whether they loaded."""
        now = self._stamps()
        if now == self._seen:
            return False
        while (later := self._stamps_after_a_moment()) != now:  # an editor is writing
            now = later
        self._seen = now
        try:
            new = self._load()
            _require_same_place(self._driven, new)
        except Exception as error:
            said = str(error) if isinstance(error, StreamTablesError) else repr(error)
            self.error = said.splitlines()[0]
            logger.error("the changed definitions cannot be loaded; the last ones go on: %s", said)
            return False
        self._driven = self._new = new
        self._seen = self._stamps()
        self.error = ""
        return True

    def _watch(self) -> None:
        while not self._end.wait(self._every):
            self.look()

    def _stamps_after_a_moment(self) -> frozenset[Stamp]:
        self._end.wait(min(0.2, self._every))
        return self._stamps()

    def _stamps(self) -> frozenset[Stamp]:
        files = (each.declared.file for each in self._driven.nodes.examined)
        folders = {*self._folders, *(Path(file).parent for file in files if file)}
        found: set[Stamp] = {*self._beside()}
        for folder in folders:
            for stamp in _stamps_below(str(folder)):
                if len(found) >= _MOST:
                    return frozenset(found)
                found.add(stamp)
        return frozenset(found)


def _stamps_below(folder: str) -> Iterator[Stamp]:
    try:
        entries = [*os.scandir(folder)]
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _stamps_below(entry.path)
            elif entry.name.endswith(_SUFFIXES):
                about = entry.stat()
                yield entry.path, about.st_mtime_ns, about.st_size
        except OSError:  # deleted meanwhile
            continue


def _require_same_place(old: Workload, new: Workload) -> None:
    if (old.logs.root, old.name) != (new.logs.root, new.name):
        raise InvalidDefinition(
            "the root of the tables changed",
            where=f"{old.logs.root} → {new.logs.root}",
            why="a worker holds the tables of one root",
            fix="restart the worker",
        )


def folder_of(module: str = "", file: str = "") -> Path:
    """The folder with the project that a module or a file belongs to."""
    if file:
        return Path(file).absolute().parent
    top = module.partition(".")[0]
    known = sys.modules.get(top)
    place = getattr(known, "__file__", None)
    paths = [*getattr(known, "__path__", [])]
    if paths:
        return Path(paths[0])
    return Path(place).parent if place else Path.cwd()


def reimport(folder: Path, load: Callable[[], T]) -> T:
    """The result of `load`, for which the modules below a folder are imported again.

    Raises:
        Exception: The error of `load`; the modules are then as before.
    """
    with _alone:
        before = _modules_below(folder)
        for name in before:
            del sys.modules[name]
        importlib.invalidate_caches()
        try:
            return load()
        except BaseException:
            for name in _modules_below(folder):
                del sys.modules[name]
            sys.modules.update(before)
            raise


def _modules_below(folder: Path) -> dict[str, ModuleType]:
    return {name: each for name, each in [*sys.modules.items()] if _is_below(each, folder)}


def _is_below(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not file or "site-packages" in file or module.__name__ == "__main__":
        return False
    return Path(file).is_relative_to(folder)
