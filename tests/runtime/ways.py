"""The ways in which most refreshes are tested: where a change is read from, and who writes it.

Each is a parameter of the fixture `lake`, so that a test need not have it as an argument.
"""

from __future__ import annotations

import pytest

feeds = pytest.mark.parametrize("feed", [True, False], ids=["feed", "no feed"])
no_feed = pytest.mark.parametrize("feed", [False], ids=["no feed"])
writers = pytest.mark.parametrize("driver_rows", [None, 0], ids=["here", "spark"])
no_orders = pytest.mark.parametrize("ordered", [0], ids=["no orders"])
