"""Python modules of a project, imported again after a change."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")
_alone = threading.Lock()
"""What is imported is the same for all threads of a process."""


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
    """What `load` returns with the modules below a folder imported anew.

    Raises:
        Exception: That of `load`; the modules are then those of before.
    """
    with _alone:
        return _reimport(folder, load)


def _reimport(folder: Path, load: Callable[[], T]) -> T:
    before = {name: each for name, each in [*sys.modules.items()] if _is_below(each, folder)}
    for name in before:
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        return load()
    except BaseException:
        new = [name for name, each in [*sys.modules.items()] if _is_below(each, folder)]
        for name in new:
            del sys.modules[name]
        sys.modules.update(before)
        raise


def _is_below(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not file or "site-packages" in file or module.__name__ == "__main__":
        return False
    return Path(file).is_relative_to(folder)
