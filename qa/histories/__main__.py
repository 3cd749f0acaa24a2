"""The command `python -m qa.histories`."""

from __future__ import annotations

import sys

from qa.histories.command import main

if __name__ == "__main__":
    sys.exit(main())
