"""How the change of a source is read."""

from __future__ import annotations

import enum


class Capture(enum.StrEnum):
    """How a refresh reads the change of one source."""

    NONE = "none"
    """Nothing changed."""
    FILES = "files"
    """Files were only rearranged, or properties changed: no rows need to be read."""
    APPENDED = "appended"
    """Rows were only added: the rows of the added files."""
    FEED = "feed"
    """The Change Data Feed, which the table wrote for the whole window."""
    SNAPSHOTS = "snapshots"
    """The rows of the files that one end of the window has and the other has not."""
    ALL = "all"
    """A full refresh reads the table."""
