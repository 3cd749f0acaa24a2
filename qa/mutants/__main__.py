"""The command `python -m qa.mutants`."""

from __future__ import annotations

import sys

from qa.mutants.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
