"""Which data files of a table are no longer there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.live_files import DataFile

if TYPE_CHECKING:
    from dagster_streamtables.runtime.delta.delta_log import TableLog

_HERE = re.compile(r"(?:file:(?://)?)?(/.*)", re.DOTALL)
"""A file of this machine, as Spark writes it in a clone (``file:/…``), as a URI, or as a path."""
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)


def missing_files(log: TableLog, files: Iterable[DataFile]) -> list[str]:
    """The paths of some files that were deleted.

    A shallow clone reads files of another table by their absolute paths; those in another store
    are not looked for.
    """
    paths = [file.path for file in files]
    here = {path: found[1] for path in paths if (found := _HERE.fullmatch(path))}
    own = [path for path in paths if path not in here and not _ELSEWHERE.match(path)]
    gone = [info.path for info in log.files.get_file_info(own) if info.type.name == "NotFound"]
    return gone + [path for path, place in here.items() if not Path(place).exists()]
