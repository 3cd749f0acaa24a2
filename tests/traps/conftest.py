"""The lake of the tests of a refresh: twenty orders, with a feed."""

from __future__ import annotations

from runtime.conftest import driver_rows, feed, lake, ordered

__all__ = ["driver_rows", "feed", "lake", "ordered"]
