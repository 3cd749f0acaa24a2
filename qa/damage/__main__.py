"""The command `python -m qa.damage`."""

from __future__ import annotations

from qa.damage.command import app

if __name__ == "__main__":
    app()
