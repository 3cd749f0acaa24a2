"""Which columns of which sources each output column is computed from.

Only values count: a column that merely decides whether a row is there (in WHERE, ON, HAVING, or as
a group key that is not returned) is not the origin of any output.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators import Aggregate, Project, Scan, Step, Sum

Origins = tuple[tuple[str, str], ...]


def lineage_of(view: Step) -> Mapping[str, Origins]:
    """Output column → distinct (source, column) pairs, in order of appearance."""
    done: dict[Step, dict[str, Origins]] = {}

    def visit(step: Step) -> dict[str, Origins]:
        if step not in done:
            done[step] = _lineage(step, [visit(each) for each in step.inputs])
        return done[step]

    return visit(view)


def _lineage(step: Step, inputs: list[dict[str, Origins]]) -> dict[str, Origins]:
    if isinstance(step, Scan):
        return {name: ((step.table, name),) for name in step.schema}
    if isinstance(step, Sum):
        left, right = inputs
        pairs = zip(left.items(), right.values(), strict=True)
        return {name: _union([one, other]) for (name, one), other in pairs}
    below = {name: origins for each in inputs for name, origins in each.items()}
    if isinstance(step, Project):
        return {name: _read(expression, below) for name, expression in step.outputs}
    if isinstance(step, Aggregate):
        measured = {name: _read(call, below) for name, call in step.measures}
        return {key: below[key] for key in step.keys} | measured
    return {name: below[name] for name in step.schema}


def _read(expression: exp.Expr, below: Mapping[str, Origins]) -> Origins:
    return _union([below[each.name] for each in expression.find_all(exp.Column)])


def _union(several: list[Origins]) -> Origins:
    return tuple(dict.fromkeys(pair for origins in several for pair in origins))
