"""How the change of a source is read."""

from __future__ import annotations

import enum


class Capture(enum.StrEnum):
    """How a refresh reads the change of one source."""

    NONE = "none"
    """Nothing came."""
    FILES = "files"
    """Files were only rearranged, or properties changed: there are no rows to read."""
    APPENDED = "appended"
    """Rows were only added: the rows of the added files."""
    FEED = "feed"
    """The Change Data Feed, which the table wrote over the whole window."""
    SNAPSHOTS = "snapshots"
    """The rows of the files that one end of the window has and the other has not."""
    ALL = "all"
    """A full refresh reads the table."""
