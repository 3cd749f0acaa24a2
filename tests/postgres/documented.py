"""What the chapters of PostgreSQL 18's documentation list for types that a Delta table can hold.

Each entry of `documented.txt` is a sample over the table of `tables`, separated from the next by a
semicolon. Whole queries begin with SELECT, WITH or VALUES.
"""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).with_name("documented.txt")


def chapters(file: Path = _FILE) -> dict[str, list[str]]:
    """Chapter → its entries, in order."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in file.read_text().splitlines():
        if line.startswith("## "):
            title = line.removeprefix("## ")
            found[title] = []
        else:
            found[title] += [each.strip() for each in line.split("; ")]
    return found


def query_of(entry: str) -> str:
    """The query of an entry."""
    whole = entry.startswith(("SELECT", "WITH", "VALUES"))
    return entry if whole else f"SELECT id, {entry} AS c FROM t"
