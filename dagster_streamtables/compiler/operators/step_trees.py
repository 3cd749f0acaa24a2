"""Trees of steps: rebuild them with one object for each distinct step, and write them as SQL.

Steps are values, and comparing two deep trees that share subtrees takes time exponential in their
depth. After `rebuild`, from the leaves up, each step is the first one equal to it: equal steps are
identical, and a comparison looks at one level only.

A step that is used once is written in place, as a subquery. A step that is used more than once,
such as the change of an aggregate's input, becomes a common table expression named after its kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Step, walk
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

# The name of an intermediate table is a digest of its SQL, so a class whose name changes must keep
# its former name there: otherwise stored tables would no longer be found, and be computed again.
_STORED_NAMES = {"WindowColumns": "windowed", "SubqueryFilter": "keep"}


def render(root: Step, *, dialect: str = DIALECT, pretty: bool = True) -> str:
    """SQL for `root`: the columns of its schema in order, and the weight if it has one."""
    return statement_of(root).sql(dialect=dialect, pretty=pretty, copy=False)


def statement_of(root: Step) -> exp.Query:
    """Like `render`, but a syntax tree, in which placeholders can still be replaced."""
    root = rebuild(root)
    used = uses(root)
    shared: dict[Step, str] = {}
    clauses: list[tuple[str, exp.Query]] = []

    def query_of(step: Step) -> exp.Query:
        names = [reference(each, f"i{position}") for position, each in enumerate(step.inputs)]
        query = step.select(*(name for name, _ in names))
        places = {name: inline for name, inline in names if inline is not None}
        return _inline_subqueries(query, places) if places else query

    def reference(step: Step, place: str) -> tuple[str, exp.Query | None]:
        # A step that refers to a recursion must be written inside it.
        if used[step] == 1 or step.open:
            return place, query_of(step)
        if step not in shared:
            query = query_of(step)
            kind = type(step).__name__
            shared[step] = f"{_STORED_NAMES.get(kind, kind.lower())}_{len(shared)}"
            clauses.append((shared[step], query))
        return shared[step], None

    statement = query_of(root)
    for name, query in clauses:
        statement = statement.with_(name, as_=query, copy=False)
    return statement


def uses(root: Step) -> Counter[Step]:
    """How often each step of a tree from `rebuild` is read; reads by a shared step count once."""
    used: Counter[Step] = Counter({root: 1})
    for step in walk(root):
        for each, times in zip(step.inputs, step.mentions, strict=True):
            used[each] += times
    return used


def _inline_subqueries(query: exp.Query, places: dict[str, exp.Query]) -> exp.Query:
    """`query` with each placeholder table, mentioned once, replaced by a subquery of its alias."""
    for table in list(query.find_all(exp.Table)):
        inline = places.pop(table.name, None)
        if inline is not None:
            table.replace(inline.subquery(table.alias or table.name, copy=False))
    return query


Rule = Callable[[Step, tuple[Step, ...]], Step]
"""A step and its new inputs → its replacement."""


def rebuild(
    root: Step,
    rule: Rule = lambda step, inputs: step.over(*inputs),
    *,
    below: Callable[[Step], bool] = lambda step: True,
) -> Step:
    """Apply `rule` to every step, inputs first, and build each distinct step once.

    Subtrees for which `below` is False stay as they are.
    """
    done: dict[int, Step] = {}
    known: dict[Step, Step] = {}

    def visit(step: Step) -> Step:
        # By identity: `root` keeps every step alive, so no id is reused.
        if id(step) not in done:
            new = rule(step, tuple(map(visit, step.inputs))) if below(step) else step
            done[id(step)] = known.setdefault(new, new)
        return done[id(step)]

    return visit(root)


def replace_step(root: Step, part: Step, other: Step) -> Step:
    return rebuild(root, lambda step, inputs: other if step == part else step.over(*inputs))
