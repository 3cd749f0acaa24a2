"""The command `python -m qa.spark_corpus`."""

import sys

from qa.spark_corpus.command import main

if __name__ == "__main__":
    sys.exit(main())
