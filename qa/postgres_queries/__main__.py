"""See `random_queries`."""

import sys

from qa.postgres_queries.random_queries import main

if __name__ == "__main__":
    sys.exit(main())
