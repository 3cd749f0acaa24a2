"""The command `python -m qa.sqlglot_fixtures`."""

from __future__ import annotations

import sys
from pathlib import Path

# The modules of the tests import one another as pytest lets them.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from qa.spark_corpus.command import main
from qa.sqlglot_fixtures.fixtures import fixtures

if __name__ == "__main__":
    sys.exit(main(inputs=fixtures()))
