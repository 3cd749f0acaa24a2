"""The page *Coverage* of the site: constructs of SQL, how each is maintained, and its cases.

Generated when the site is built, from the case files and from what the compiler makes of them, so
that it cannot claim what no test shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES
from dagster_streamtables.compiler import Plan, compile_query
from dagster_streamtables.compiler.maintain.strategy import GroupStrategy
from dagster_streamtables.compiler.operators.algebra import Operator, Step
from dagster_streamtables.errors import InvalidDefinition

ROOT = Path(__file__).parent.parent

FEATURES = {
    "Q1": "projection, WHERE, and expressions over one row",
    "Q2": "joins of every kind, chains of them, self joins, conditions of every kind",
    "Q3": "a key changes and its partner goes in one window",
    "Q4": "GROUP BY and HAVING, with and without keys",
    "Q5": "COUNT, SUM and AVG, folded from the change",
    "Q6": "MIN and MAX, folded; a group that lost its extremum is read again",
    "Q7": "every other aggregate",
    "Q8": "FILTER, DISTINCT, ORDER BY and WITHIN GROUP inside an aggregate",
    "Q9": "GROUPING SETS, CUBE, ROLLUP and GROUPING()",
    "Q10": "DISTINCT, and the first row of each group",
    "Q11": "UNION, INTERSECT and EXCEPT, with ALL and without",
    "Q12": "subqueries and rows of the query in FROM, columns renamed by an alias",
    "Q13": "EXISTS, IN, NOT IN, ANY and ALL, wherever they stand",
    "Q14": "scalar subqueries, correlated and not",
    "Q15": "LATERAL subqueries",
    "Q16": "table functions in FROM",
    "Q17": "common table expressions",
    "Q18": "recursion",
    "Q19": "window functions",
    "Q20": "window functions inside expressions, and QUALIFY",
    "Q21": "ORDER BY, LIMIT and OFFSET",
    "Q22": "views",
    "Q23": "TABLESAMPLE and locking clauses are refused",
    "Q24": "functions with another value each time, or in another refresh",
    "Q25": "conditions on the time, which rows enter and leave as it passes",
    "Q26": "sources without a key, with copies of rows",
    "Q27": "dialects",
    "Q28": "NULLs, empty inputs, NaN, -0.0, wide decimals, nested types",
    "Q29": "what cannot be maintained is named, with its place, its reason and what to do",
    "Q30": "windows of time: window() and session_window()",
    "Q31": "PIVOT and UNPIVOT",
    "R5": "many changes of one row within a window count once",
    "R8": "a source that is overwritten",
    "R9": "columns that the query does not read",
}
ELSEWHERE = {
    "Q14": [
        ("tests/compiler/test_cases.py", "test_a_scalar_subquery_of_two_rows_fails_the_refresh")
    ],
    "Q22": [
        ("tests/compiler/test_views.py", "test_a_view_is_its_rows"),
        ("tests/compiler/test_views.py", "test_a_circle_of_views_is_refused_with_its_path"),
        ("tests/runtime/test_views.py", "test_a_changed_view_rebuilds_the_stream_tables_over_it"),
    ],
    "Q27": [("tests/compiler/test_dialect.py", "test_a_word_with_another_meaning_is_mended")],
    "Q29": [("tests/compiler/test_refused.py", "test_a_refusal_has_four_parts")],
}
"""What no query alone shows, and the tests that do."""

_INTRODUCTION = """\
# What is maintained

Generated from `tests/compiler/cases/*.sql`. Each construct of a query is shown by a case: a query,
a change of its sources, and the change of its result that must come out. Every case also runs on
random changes, and every table is compared with a full recomputation.

- *law*: what the change of the operators is, beyond the linear ones, which cost the change; the
  modules in `dagster_streamtables/compiler/operators/` say each in a formula.
- *reads*: what a refresh reads by that law.
- *enters*: how the change enters the table: `bag` adds and takes away rows, `fold` adds to the
  stored groups, `regroup` computes the touched groups again.
"""
_REFUSED = """
## What is refused

At definition time, with the place in the text and with what to do instead; mode FULL takes all of
them that are valid SQL.

| | message | why |
|---|---|---|
"""


@dataclass(frozen=True)
class Line:
    """One construct of a feature, and the cases that show it."""

    feature: str
    construct: str
    cases: tuple[Case, ...]

    def row(self) -> str:
        plan = plan_of(self.cases[0])
        laws = dict(laws_of(plan))
        places = "<br>".join(f"{case.file}: {case.name}" for case in self.cases)
        costs, kind = "; ".join(laws.values()), plan.strategy_kind
        return _row(self.construct, ", ".join(laws), costs, kind, places)


@cache
def plan_of(case: Case) -> Plan:
    return compile_query(case.query, TABLES)


def laws_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """(law, what it reads) of the operators that are not linear; of all if all are."""
    found = {(step.law, step.cost) for step in _operators(plan)}
    beyond = sorted(pair for pair in found if pair[0] not in ("linear", "constant"))
    together: dict[str, list[str]] = {}
    for law, cost in beyond or sorted(pair for pair in found if pair[0] == "linear"):
        together.setdefault(law, []).append(cost)
    for law, costs in together.items():
        yield law, "; ".join(costs)


def _operators(plan: Plan) -> Iterator[Operator]:
    """The operators of the query; not the groups at its root, which are of the strategy."""
    grouped = isinstance(plan.strategy, GroupStrategy)
    seen: set[Step] = {plan.strategy.groups.aggregate} if grouped else set()
    waiting: list[Step] = [plan.view]
    while waiting:
        step = waiting.pop()
        if isinstance(step, Operator) and step not in seen:
            yield step
        seen.add(step)
        waiting.extend(each for each in step.inputs if each not in seen)


def lines() -> list[Line]:
    found: dict[tuple[str, str], list[Case]] = {}
    for case in casefile.load():
        if not case.error:
            for pair in case.constructs:
                found.setdefault(pair, []).append(case)
    return [Line(*pair, tuple(cases)) for pair, cases in found.items()]


def refused() -> list[Case]:
    return [case for case in casefile.load() if case.error]


def page() -> str:
    """The text of the page, in Markdown."""
    parts = [_INTRODUCTION]
    by_feature: dict[str, list[Line]] = {feature: [] for feature in FEATURES}
    for line in lines():
        by_feature[line.feature].append(line)
    for feature, words in FEATURES.items():
        parts.append(f"\n## {feature}: {words}\n\n")
        if by_feature[feature]:
            parts.append("| construct | law | reads | enters | cases |\n|---|---|---|---|---|\n")
            parts += [line.row() for line in by_feature[feature]]
        tests = [f"`{file}`: `{test}`" for file, test in ELSEWHERE.get(feature, [])]
        if tests:
            parts.append("\nShown by " + ", ".join(tests) + ".\n")
        if any(case.constructs[0][0] == feature for case in refused()):
            parts.append("\nRefused in part: see below.\n")
    return "".join([*parts, _REFUSED, *map(_refusal, refused())])


def _refusal(case: Case) -> str:
    try:
        compile_query(case.query, TABLES)
    except InvalidDefinition as error:
        return _row(case.constructs[0][0], error.what, error.why)
    raise AssertionError(f"{case} is maintained")


def _row(*cells: str) -> str:
    shown = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(shown)} |\n"
