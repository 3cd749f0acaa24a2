"""The command `python -m qa.races`."""

import sys

from qa.races.command import main

if __name__ == "__main__":
    sys.exit(main())
