"""The command `python -m qa.sqlglot_fixtures`."""

import sys

from qa.spark_corpus.command import main
from qa.sqlglot_fixtures.fixtures import fixtures

if __name__ == "__main__":
    sys.exit(main(inputs=fixtures()))
