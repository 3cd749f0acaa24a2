"""Steps → one SQL statement.

A step that is used once is written in place, as a subquery; a step that is used more than once
becomes a common table expression, named after its kind and written once. Steps are values, so a
subtree that a rule mentions twice -- the change of an aggregate's input, say -- is found by
comparing.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from dagster_streamtables.compiler.operators import Step
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.text.spark import DIALECT


def render(root: Step, *, dialect: str = DIALECT, pretty: bool = True) -> str:
    """The rows of `root`, in the order of its schema, and the weight where it has weights."""
    return statement_of(root).sql(dialect=dialect, pretty=pretty, copy=False)


def statement_of(root: Step) -> exp.Query:
    """The same as a syntax tree, in which what stands for a relation can still be told."""
    root = rebuild(root)
    used = uses(root)
    shared: dict[Step, str] = {}
    clauses: list[tuple[str, exp.Query]] = []

    def query_of(step: Step) -> exp.Query:
        names = [reference(each, f"i{position}") for position, each in enumerate(step.inputs)]
        query = step.select(*(name for name, _ in names))
        places = {name: inline for name, inline in names if inline is not None}
        return _inlined(query, places) if places else query

    def reference(step: Step, place: str) -> tuple[str, exp.Query | None]:
        # What mentions a recursion can only stand inside it.
        if used[step] == 1 or step.open:
            return place, query_of(step)
        if step not in shared:
            query = query_of(step)
            shared[step] = f"{type(step).__name__.lower()}_{len(shared)}"
            clauses.append((shared[step], query))
        return shared[step], None

    statement = query_of(root)
    for name, query in clauses:
        statement = statement.with_(name, as_=query, copy=False)
    return statement


def uses(root: Step) -> Counter[Step]:
    """How often each step is read, every step's own reads counted once."""
    used: Counter[Step] = Counter({root: 1})
    seen = {root}
    todo = [root]
    while todo:
        step = todo.pop()
        for each, times in zip(step.inputs, step.mentions, strict=True):
            used[each] += times
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return used


def _inlined(query: exp.Query, places: dict[str, exp.Query]) -> exp.Query:
    """`query` with the placeholder tables exchanged for subqueries of the same alias.

    A step mentions each of its inputs once, so nothing need be copied.
    """
    for table in list(query.find_all(exp.Table)):
        inline = places.pop(table.name, None)
        if inline is not None:
            table.replace(inline.subquery(table.alias or table.name, copy=False))
    return query
