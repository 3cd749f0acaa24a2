"""The command `python -m qa.damage`."""

from __future__ import annotations

import sys
from pathlib import Path

# The modules of the tests import one another as pytest lets them.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from qa.damage.command import app

if __name__ == "__main__":
    app()
