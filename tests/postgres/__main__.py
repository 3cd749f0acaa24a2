"""See `random_queries`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from postgres.random_queries import main

if __name__ == "__main__":
    sys.exit(main())
