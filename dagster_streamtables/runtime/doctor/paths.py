"""One spelling for each file of a table, however the log or the store spells it.

A log has paths as URIs, relative to the table, or absolute as in a clone; delta-rs and Spark encode
the values of partitions differently, and folders on disk are encoded once more.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.names import is_remote

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/+", re.IGNORECASE)


class Paths:
    """The paths of one table."""

    def __init__(self, location: str) -> None:
        places = [location] if is_remote(location) else [location, str(Path(location).resolve())]
        self._places = [_absolute(each).rstrip("/") + "/" for each in places]

    def plain(self, path: str) -> str:
        """A path relative to the table, decoded; absolute for a file elsewhere.

        >>> Paths("s3a://b/t").plain("s3://b/t/p=a%2520b/f"), Paths("/t").plain("file:/u/f")
        ('p=a b/f', '/u/f')
        """
        text = _decode(path)
        if not text.startswith("/") and not _SCHEME.match(text):
            return text
        text = _absolute(text)
        for place in self._places:
            if text.startswith(place):
                return text.removeprefix(place)
        return text


def _absolute(path: str) -> str:
    """An absolute path without the scheme, of which ``s3`` and ``s3a`` are the same."""
    return _SCHEME.sub("/", _decode(path), count=1)


def _decode(path: str) -> str:
    while "%" in path and (once := unquote(path)) != path:
        path = once
    return path
