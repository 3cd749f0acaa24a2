"""The command `python -m qa.scopes`."""

from qa.scopes.command import app

if __name__ == "__main__":
    app()
