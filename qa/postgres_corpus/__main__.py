"""The command `python -m qa.postgres_corpus`."""

import sys

from qa.postgres_corpus.command import main

if __name__ == "__main__":
    sys.exit(main())
