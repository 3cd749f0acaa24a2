"""The folder of the local Spark server: `$STREAMTABLES_HOME`, by default ``~/.streamtables``.

Everything that the server and its clients share is a file in it, and one folder has one server:
programs that name the same folder find the same server, others never meet it.
"""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder, made if it is missing and closed to other users of the machine."""
    named = os.environ.get("STREAMTABLES_HOME")
    folder = Path(named).expanduser() if named else Path.home() / ".streamtables"
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def temporary() -> Path:
    """Where the server's temporary files are. It is emptied before a server starts, also of what
    one that was killed left there, or a refresh."""
    return home() / "tmp"
