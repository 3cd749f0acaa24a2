"""Every fix can be followed: the query that results from it is stored, and is accepted.

The result for a query of Spark is the section `fixed` of its case in `refused.sql`; for a query of
another dialect, the indented line after it in `fixes.txt`. A fix that is no rewriting of the query
needs none: its first advice names what to change instead, see `_ELSEWHERE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from compiler import test_dialect
from compiler.casefile import Case
from compiler.database import TABLES
from compiler.test_refused import CALENDAR, refused
from dagster_streamtables import StreamTable
from dagster_streamtables.compiler.text.syntax import IN_POSTGRES
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.definition import stored_plan
from postgres import test_zones
from postgres.cases import REFUSED, REFUSED_OF_ZONES
from postgres.documented import chapters
from postgres.tables import COLUMNS

FIXES = Path(__file__).with_name("fixes.txt")
_ELSEWHERE = re.compile(r"\b(source|settings?|Delta table|Spark SQL|upstream|mode FULL|shown)\b")
"""What an author changes instead of the query, or the other language that a part is written in."""
_ADVICE = re.compile(r"; |: |, (?![^(]*\))| or ")
"""What separates the pieces of advice of a fix."""
_SQL = re.compile(r'"[^"]+"|`[^`]+`|\b[A-Z][A-Z_]+\b|\b\w{2,}(?=\()|<>|->>|\|\|')
"""Words of SQL in a fix: quoted names, keywords, functions, and some operators."""

Columns = Mapping[str, Mapping[str, str]]
Texts = list[tuple[str, str, Columns]]
"""A dialect, a text that it refuses, and the columns of its tables."""
_TWO = {**test_dialect.COLUMNS, "u": test_dialect.COLUMNS["t"]}
LISTS: list[Texts] = [
    [("postgres", entry, COLUMNS) for entries in chapters().values() for entry in entries],
    [("postgres", text, COLUMNS) for text, _ in REFUSED],
    [("postgres", text, test_zones.COLUMNS) for text, _ in REFUSED_OF_ZONES],
    [(dialect, text, _TWO) for dialect, text, *_ in test_dialect.REFUSED],
    [(dialect, text, _TWO) for dialect, text, _ in test_dialect.REFUSED_WHOLE],
    [
        ("spark", "SELECT id AS `Order Id` FROM t", _TWO),
        ("postgres", 'SELECT id AS "Order Id" FROM t', _TWO),
        ("duckdb", 'SELECT id AS "Order Id" FROM t', _TWO),
        ("spark", "SELECT id, current_date AS d FROM days", CALENDAR),
    ],
]
"""Every list of texts of other dialects. That of the documentation has texts that are accepted."""


@dataclass(frozen=True)
class Entry:
    dialect: str
    query: str
    columns: Columns
    fixed: str
    """The query after its fix was followed; empty if none is stored."""

    def __str__(self) -> str:
        return f"{self.dialect}: {self.query}"


def _read() -> dict[tuple[str, str], str]:
    """(dialect, refused text) → the text after the fix."""
    found: dict[tuple[str, str], str] = {}
    dialect = text = ""
    for line in FIXES.read_text().splitlines():
        if line.startswith("## "):
            dialect = line.removeprefix("## ")
        elif line.startswith("    "):
            found[dialect, text] = line.strip()
        else:
            text = line
    return found


def _query(text: str) -> str:
    whole = text.startswith(("SELECT ", "VALUES ", "WITH "))
    return text if whole else f"SELECT {text} AS c FROM t"


def _refusal(query: str, dialect: str, columns: Columns) -> InvalidDefinition | None:
    try:
        table = StreamTable("t", query, dialect=dialect)
        stored_plan(table, table.text(columns), columns)
    except InvalidDefinition as error:
        return error
    return None


def _fault(entry: Entry) -> str:
    """Why the fix of a refused query cannot be followed; empty if it can, or if the query is
    accepted."""
    error = _refusal(entry.query, entry.dialect, entry.columns)
    if error is None:
        return ""
    dialect, fixed = entry.dialect, entry.fixed
    if error.fix.startswith(IN_POSTGRES):
        dialect, fixed = "postgres", entry.query
    advice = _ADVICE.split(re.sub(r"'[^']*'", "''", error.fix))
    if not fixed:
        where = "a section `--- fixed` of the case" if dialect == "spark" else f"to {FIXES.name}"
        need = f'{entry}: add the query that results from "{error.fix}" as {where}'
        return "" if _ELSEWHERE.search(advice[0]) else need
    again = _refusal(fixed, dialect, entry.columns)
    if again is not None:
        return f"{entry}: after {error.fix!r}, {fixed!r} is refused as well:\n{again}"
    wanted = [words for each in advice if not _ELSEWHERE.search(each) and (words := _words(each))]
    written = _words(fixed) | set(re.findall(r"\w+", fixed.upper()))
    follows = not wanted or any(words <= written for words in wanted)
    return "" if follows else f"{entry}: {fixed!r} does not follow {error.fix!r}"


def _words(text: str) -> set[str]:
    return {word if word[0] in '"`' else word.upper() for word in _SQL.findall(text)}


@pytest.mark.parametrize("case", refused, ids=str)
def test_a_fix_can_be_followed(case: Case) -> None:
    assert not _fault(Entry("spark", case.query, TABLES, case.fixed))


@pytest.mark.parametrize(
    "texts",
    [pytest.param(LISTS[0], marks=pytest.mark.thorough), *LISTS[1:]],
    ids=["documented", "further", "zones", "words", "whole", "names"],
)
def test_a_fix_of_another_dialect_can_be_followed(texts: Texts) -> None:
    fixes = _read()
    faults: list[str] = []
    for dialect, text, columns in texts:
        fixed = fixes.get((dialect, text), "")
        faults.append(_fault(Entry(dialect, _query(text), columns, fixed and _query(fixed))))
    assert not any(faults), "\n".join(filter(None, faults))


def test_every_stored_fix_belongs_to_a_refused_text() -> None:
    listed = {(dialect, text): columns for texts in LISTS for dialect, text, columns in texts}
    unknown = set(_read()) - listed.keys()
    accepted = [
        text
        for dialect, text in _read().keys() & listed.keys()
        if _refusal(_query(text), dialect, listed[dialect, text]) is None
    ]
    assert not unknown and not accepted, f"remove from {FIXES.name}: {unknown or accepted}"
