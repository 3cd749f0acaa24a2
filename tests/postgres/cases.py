"""Expressions and queries of PostgreSQL users, everyday ones first. What they return is not written
here: PostgreSQL is asked.

The files have them as PostgreSQL reads them: `expressions.txt` and `represented.txt` in the form of
`documented.txt`, and the statements of `queries.sql` and `represented_queries.sql`. What is refused
is in `refused.txt`.
"""

from __future__ import annotations

import re
from pathlib import Path

from compiler.casefile import tables
from postgres.documented import chapters

_HERE = Path(__file__).parent


def entries(name: str) -> list[str]:
    """The entries of all chapters of a file."""
    return [entry for each in chapters(_HERE / name).values() for entry in each]


def _queries(name: str) -> list[str]:
    """The statements of a file, each on one line."""
    text = re.sub(r"^--.*\n", "", (_HERE / name).read_text(), flags=re.M)
    return [" ".join(each.split()) for each in text.split(";\n") if each]


EXPRESSIONS = entries("expressions.txt")
QUERIES = _queries("queries.sql")
"""Equal to the last character and the last digit."""
REPRESENTED = entries("represented.txt")
REPRESENTED_QUERIES = _queries("represented_queries.sql")
"""Equal but for the digits of a float or of a long decimal, or the spaces and keys of JSON."""
REFUSED, REFUSED_OF_ZONES = tables("refused.txt", _HERE).values()
"""What would differ, and a part of the reason."""
EVERYDAY = EXPRESSIONS[::16]
"""The part that `.ci/run` runs on Spark."""
EVERYDAY_QUERIES = [QUERIES[i] for i in (1, 5, 17)]
