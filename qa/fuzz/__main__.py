"""The command `python -m qa.fuzz`."""

import sys

from qa.fuzz.command import main

sys.exit(main())
