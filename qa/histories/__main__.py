"""The command `python -m qa.histories`."""

import sys

from qa.histories.command import main

if __name__ == "__main__":
    sys.exit(main())
