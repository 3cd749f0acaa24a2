"""Reading tests/compiler/cases/*.sql.

A case file is SQL with `--- ` headings. Each case is a query, the rows that its sources hold
before, the statements that change them, and the change of the result that must come out::

    --- case: a second copy changes nothing
    --- covers: Q10 DISTINCT
    SELECT DISTINCT customer FROM orders;
    --- before
    INSERT INTO orders VALUES (10, 1, 5);
    --- change
    INSERT INTO orders VALUES (11, 1, 6);
    --- delta

Lines of `delta` are ``-- weight | column | column``, of the columns that a reader sees. A case that
must be refused has a section `error`, with the first line of the message, and a section `fixed`
with the query after its author followed the fix, unless that changes something else.

Below the title stand two lines that are not SQL. `covers` names rows of the table of features, each
with the construct of it that the case shows; several are separated by semicolons. `spark` says why
DuckDB cannot run the case, or answers otherwise than Spark: it runs on Spark alone. Where both run
it and Spark answers otherwise than SQL says, `delta of Spark` has the change that comes out there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

CASES = Path(__file__).parent / "cases"
_SECTION = re.compile(r"^--- (before|change|delta|delta of Spark|error|fixed)\n", flags=re.M)


@dataclass(frozen=True)
class Case:
    file: str
    name: str
    query: str
    before: str = ""
    change: str = ""
    delta: str = ""
    delta_of_spark: str = ""
    error: str = ""
    fixed: str = ""
    covers: str = ""
    spark: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def expected(self) -> list[tuple[str, ...]]:
        """The lines of `delta`: the weight first, then the columns as text."""
        return _lines(self.delta)

    @property
    def expected_of_spark(self) -> list[tuple[str, ...]]:
        """The same, as Spark answers."""
        return _lines(self.delta_of_spark or self.delta)

    @property
    def constructs(self) -> list[tuple[str, str]]:
        """(id of a feature, construct of it) for each that the case shows."""
        parts = (part.strip().partition(" ") for part in self.covers.split(";"))
        return [(feature, construct) for feature, _, construct in parts if feature]


def _lines(delta: str) -> list[tuple[str, ...]]:
    lines = (line.removeprefix("-- ") for line in delta.splitlines() if line)
    return sorted(tuple(line.split(" | ")) for line in lines)


def load(pattern: str = "*.sql") -> list[Case]:
    """All cases of the files that match, in the order in which they are written."""
    return [case for path in sorted(CASES.glob(pattern)) for case in _read(path)]


def tables(name: str, folder: Path = CASES.parent) -> dict[str, list[tuple[str, ...]]]:
    """The chapters of a file of texts, each a table for a parametrized test.

    A row is a line and the indented lines after it. Each is an argument, or several with arrows
    between them.
    """
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in (folder / name).read_text().splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ")] = chapter = []
        elif line.startswith("    "):
            chapter[-1] += tuple(line.strip().split(" → "))
        elif not line.startswith("#"):
            chapter.append(tuple(line.split(" → ")))
    return found


def parametrize_with_cases(metafunc: pytest.Metafunc, fits: Callable[[Case], bool]) -> None:
    """Parametrize the thorough tests of a module with the cases that fit.

    Only the compiler can tell which do, so it runs only if thorough tests are selected.
    """
    if "case" in metafunc.fixturenames:
        chosen = Expression.compile(metafunc.config.option.markexpr or "thorough")
        thorough = chosen.evaluate(lambda name, **_: name == "thorough")
        cases = [case for case in of_duckdb() if fits(case)] if thorough else []
        metafunc.parametrize("case", cases, ids=str)


@cache
def of_duckdb() -> list[Case]:
    """Those of queries that can be maintained, and that DuckDB answers, too."""
    return [case for case in load() if not (case.error or case.spark)]


def _read(path: Path) -> Iterator[Case]:
    for block in re.split(r"^--- case: ", path.read_text(), flags=re.M)[1:]:
        head, *sections = _SECTION.split(block)
        name, query = head.split("\n", 1)
        names = (each.replace(" ", "_").lower() for each in sections[::2])
        parts = dict(zip(names, map(str.strip, sections[1::2]), strict=True))
        parts |= {"fixed": parts["fixed"].rstrip(";")} if "fixed" in parts else {}
        while above := re.match(r"--- (covers|spark): (.*)\n", query):
            parts[above[1]], query = above[2].strip(), query[above.end() :]
        yield Case(path.stem, name.strip(), query.strip().rstrip(";"), **parts)
