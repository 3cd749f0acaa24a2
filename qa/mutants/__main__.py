"""The command `python -m qa.mutants`."""

import sys

from qa.mutants.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
