"""The folder of the local Spark server: `$STREAMTABLES_HOME`, by default ``~/.streamtables``.

Everything that the server and its clients share is a file in it, and one folder has one server:
programs that name the same folder find the same server, others never meet it.

The folder is its owner's alone, and it is the one gate: nobody else passes it, so what lies below
is closed whatever mode a JVM or a library gave it. The umask could not be the gate. The server
writes the tables of a lake, whose modes are its user's choice, beside its own files.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from filelock import FileLock

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark.environment import variable

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def home() -> Path:
    """The folder, made if it is missing and closed to other users of the machine.

    Raises:
        EnvironmentProblem: It cannot be made or closed, or another user has had a hand in it.
    """
    named = variable("STREAMTABLES_HOME")
    folder = Path(named).expanduser() if named else Path.home() / ".streamtables"
    folder = folder.absolute()
    _require_own_links(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise EnvironmentProblem(
            "the folder STREAMTABLES_HOME cannot be made",
            where=str(folder),
            why=str(error),
            fix="name one in STREAMTABLES_HOME that this user may make",
        ) from error
    _close(folder)
    return folder


def temporary() -> Path:
    """Where the server's temporary files are. It is emptied before a server starts, also of what
    one that was killed left there, or a refresh."""
    return home() / "tmp"


def lock(*place: str, blocking: bool = True) -> FileLock:
    """The lock of a file in the folder, for processes and threads alike."""
    file = home().joinpath(*place)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    return FileLock(file, mode=0o600, blocking=blocking, thread_local=False)


def _require_own_links(folder: Path) -> None:
    """In a shared place, another user's link would lead the server into a folder of this user,
    where it would write its files, and empty ``tmp``."""
    for place in (folder, *folder.parents):
        if place.is_symlink() and place.lstat().st_uid not in (os.geteuid(), _ROOT):
            raise EnvironmentProblem(
                "the folder STREAMTABLES_HOME leads through a link of another user",
                where=str(place),
                why="they decide where it leads",
                fix="name a folder in STREAMTABLES_HOME that no other user can replace",
            )


def _close(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise EnvironmentProblem(
            "the folder STREAMTABLES_HOME belongs to another user",
            where=str(folder),
            why="who owns it can read what the server is told, and run anything as its user",
            fix="name a folder of your own in STREAMTABLES_HOME",
        )
    if found.st_mode & _OTHERS_WRITE and any(folder.iterdir()):
        raise EnvironmentProblem(
            "other users may write into the folder STREAMTABLES_HOME",
            where=str(folder),
            why="what is in it may be theirs, such as a JAR that the server would run",
            fix="delete it, or, if you know all that is in it, "
            f"run: chmod -R go-rwx {shlex.quote(str(folder))}",
        )
    if found.st_mode & _OTHERS:
        folder.chmod(0o700)
        if folder.stat().st_mode & _OTHERS:
            raise EnvironmentProblem(
                "the folder STREAMTABLES_HOME cannot be closed to other users",
                where=str(folder),
                why="its file system keeps no permissions",
                fix="name a folder on another file system in STREAMTABLES_HOME",
            )
