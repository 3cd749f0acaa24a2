"""The command `python -m qa.object_store`."""

from qa.object_store.command import app

if __name__ == "__main__":
    app()
