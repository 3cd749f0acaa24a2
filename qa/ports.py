"""Waiting for a server that a suite has started."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import closing, suppress

HOST = "127.0.0.1"
_PAUSE = 0.2


def answers(port: int, seconds: float, server: subprocess.Popen[bytes] | None = None) -> bool:
    """Wait until something listens on a port of this machine. Returns False if nothing does after
    so many seconds, or once the server has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (server is None or server.poll() is None):
        with suppress(OSError), closing(socket.create_connection((HOST, port), 1)):
            return True
        time.sleep(_PAUSE)
    return False
