"""Python in a process of its own, for what a process has once."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def python(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run an interpreter until it ends: ``python("-c", program)``; what it prints is kept."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)
