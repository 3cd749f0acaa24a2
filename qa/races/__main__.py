"""The command `python -m qa.races`."""

from __future__ import annotations

import sys

from qa.races.command import main

if __name__ == "__main__":
    sys.exit(main())
