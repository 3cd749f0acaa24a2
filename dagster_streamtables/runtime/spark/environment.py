"""The folder of the local Spark server, and the environment variables that configure Spark.

The folder is `$STREAMTABLES_HOME`, by default ``~/.streamtables``. The server and its clients share
only files in it, and each folder has one server: programs that name the same folder use the same
server.

Only the owner can enter the folder, which protects the files below it, whatever mode a JVM or a
library gave them. A umask could not protect them: besides its own files, the server writes the
tables of a lake, whose modes are its user's choice.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.setting import Display, Predicate, Range, read_environment, settings_of


def memory_bytes(text: str) -> int:
    """The bytes of a size as Java writes it; 0 if it is not a size.

    >>> memory_bytes("2g"), memory_bytes("1500m"), memory_bytes("plenty")
    (2147483648, 1572864000, 0)
    """
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    return int(found[1]) * 1024 ** " kmgt".index(found[2] or " ") if found else 0


_MEMORY = Predicate(
    lambda text: memory_bytes(text) >= 2**20, "memory as Java writes it, such as 2g or 1500m"
)


@dataclass(frozen=True)
class Variables:
    """Their names, values and defaults; an empty variable counts as not set."""

    STREAMTABLES_SPARK: Annotated[str, Display(default="the local server")] = ""
    """The default address of Spark: `sc://host:15002`, or `local[2]`."""
    STREAMTABLES_HOME: Annotated[str, Display(default="`~/.streamtables`")] = ""
    """The folder of the local server: JARs, log, state, Spark's temporary files. Each folder has
    one server, and is closed to other users."""
    STREAMTABLES_SPARK_MEMORY: Annotated[str, _MEMORY] = "2g"
    """The heap of the local server."""
    STREAMTABLES_IDLE_MINUTES: Annotated[float, Range(0, above=True)] = 60
    """The local server stops after this many minutes without use."""
    STREAMTABLES_IVY_SETTINGS: str = ""
    """An Ivy settings file, for a mirror of Maven Central."""
    STREAMTABLES_CATALOGS: str = ""
    """The catalogs of commands that are given a root, as for the resource:
    `main=https://catalog.internal,sales=spark`."""
    STREAMTABLES_CATALOG_TOKEN: str = ""
    """The bearer token for Unity Catalog, of the same commands."""
    STREAMTABLES_CLASS_ARCHIVE: bool = True
    """Whether the local server keeps an archive of Java's classes in its folder, 210 MB, which
    makes later starts quicker."""


_DECLARED = {each.name: each for each in settings_of(Variables)}


def variable(name: str) -> Any:
    """The value of one of `Variables`, with the type that it declares.

    Raises:
        InvalidDefinition: Its text is not a valid value.
    """
    declared = _DECLARED[name]
    return read_environment(name, declared.hint, declared.default)


_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def home() -> Path:
    """The folder, created if it is missing and closed to other users of the machine.

    Raises:
        EnvironmentProblem: It cannot be created or closed, or another user may have changed it.
    """
    named = variable("STREAMTABLES_HOME")
    folder = Path(named).expanduser() if named else Path.home() / ".streamtables"
    folder = folder.absolute()
    _require_own_links(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise EnvironmentProblem(
            "the folder STREAMTABLES_HOME cannot be created",
            where=str(folder),
            why=str(error),
            fix="name one in STREAMTABLES_HOME that this user may create",
        ) from error
    _close(folder)
    return folder


def temporary(folder: Path | None = None) -> Path:
    """The server's temporary files. Emptied before a server starts, also of files that a killed
    server or refresh left."""
    return (folder or home()) / "tmp"


def lock(*place: str, folder: Path | None = None, blocking: bool = True) -> FileLock:
    """A lock file in the folder, for processes and threads."""
    file = (folder or home()).joinpath(*place)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    return FileLock(file, mode=0o600, blocking=blocking, thread_local=False)


def _require_own_links(folder: Path) -> None:
    """In a shared folder, another user's link could lead the server into a folder of this user,
    where it would write its files and empty ``tmp``."""
    for place in (folder, *folder.parents):
        if place.is_symlink() and place.lstat().st_uid not in (os.geteuid(), _ROOT):
            raise EnvironmentProblem(
                "the folder STREAMTABLES_HOME leads through a link of another user",
                where=str(place),
                why="that user decides where it leads",
                fix="name a folder in STREAMTABLES_HOME that no other user can replace",
            )


def _close(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise EnvironmentProblem(
            "the folder STREAMTABLES_HOME belongs to another user",
            where=str(folder),
            why="its owner can read what is sent to the server, and run anything as its user",
            fix="name your own folder in STREAMTABLES_HOME",
        )
    if found.st_mode & _OTHERS_WRITE and any(folder.iterdir()):
        raise EnvironmentProblem(
            "other users may write into the folder STREAMTABLES_HOME",
            where=str(folder),
            why="they may have put files into it, such as a JAR that the server would run",
            fix="delete it, or, if you know all its contents, "
            f"run: chmod -R go-rwx {shlex.quote(str(folder))}",
        )
    if found.st_mode & _OTHERS:
        folder.chmod(0o700)
        if folder.stat().st_mode & _OTHERS:
            raise EnvironmentProblem(
                "the folder STREAMTABLES_HOME cannot be closed to other users",
                where=str(folder),
                why="its file system stores no permissions",
                fix="name a folder on another file system in STREAMTABLES_HOME",
            )
