"""The command `python -m qa.unattended`."""

from __future__ import annotations

import sys

from qa.unattended.command import main

if __name__ == "__main__":
    sys.exit(main())
