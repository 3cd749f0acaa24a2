"""The command `python -m qa.object_store`."""

from __future__ import annotations

from qa.object_store.command import app

if __name__ == "__main__":
    app()
