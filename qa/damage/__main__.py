"""The command `python -m qa.damage`."""

from qa.damage.command import app

if __name__ == "__main__":
    app()
