"""The command `python -m qa.unattended`."""

import sys

from qa.unattended.command import main

if __name__ == "__main__":
    sys.exit(main())
