"""The command `python -m qa.object_store`."""

from __future__ import annotations

import sys
from pathlib import Path

# The modules of the tests import one another as pytest lets them.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from qa.object_store.command import app

if __name__ == "__main__":
    app()
