"""The command `python -m qa.fuzz`."""

from __future__ import annotations

import sys

from qa.fuzz.command import main

sys.exit(main())
