"""Suites that run for hours; `README.md` lists their commands.

They use the harness of the tests, whose modules import one another as pytest lets them.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
