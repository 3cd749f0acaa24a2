"""Descriptions of a tree of steps: its outline, and the lineage of its columns.

The outline has one line per step, with inputs indented; a repeated subtree is a line number.

The lineage of an output column is the source columns from which its values are computed. A column
that only decides which rows exist (in WHERE, ON, HAVING, in a condition or the order of a subquery,
or as a group key that is not returned) is not the origin of any output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator, Step, Sum
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.recursion import Recursion, Reference
from dagster_streamtables.compiler.operators.refresh_time import TimeColumn
from dagster_streamtables.compiler.operators.step_trees import rebuild
from dagster_streamtables.compiler.text.current_time import NOW


@dataclass(frozen=True)
class OperatorLine:
    number: int
    depth: int
    operator: str
    law: str = ""
    """The operator's law; empty for other steps and for repeated subtrees."""
    cost: str = ""
    """What its change reads."""

    def __str__(self) -> str:
        law = f"  [{self.law}: reads {self.cost}]" if self.law else ""
        return f"{self.number:>3}  {'  ' * self.depth}{self.operator}{law}"


def lines(root: Step, *, laws: bool = False) -> list[OperatorLine]:
    """The outline of a tree; with `laws`, also each operator's law, and what its change reads."""
    found: list[OperatorLine] = []
    written: dict[Step, int] = {}

    def write(step: Step, depth: int) -> None:
        number = len(found) + 1
        if step in written and step.inputs:
            found.append(OperatorLine(number, depth, f"line {written[step]} again"))
            return
        law = (step.law, step.cost) if laws and isinstance(step, Operator) else ()
        found.append(OperatorLine(number, depth, step.explain(), *law))
        written[step] = number
        for each in step.inputs:
            write(each, depth + 1)

    write(rebuild(root), 0)
    return found


def outline(root: Step, *, laws: bool = False) -> str:
    return "\n".join(map(str, lines(root, laws=laws)))


Origins = tuple[tuple[str, str], ...]
_Columns = dict[str, Origins]
_References = Mapping[str, list[Origins]]
_TIME = ("", NOW)
"""The time of the refresh as an origin; no source has an empty name."""
_CLAUSES = (exp.Where, exp.Having, exp.Order, exp.Group, exp.Limit, exp.Offset)


def lineage_of(view: Step) -> Mapping[str, Origins]:
    """Output column → distinct (source, column) pairs, in order of appearance."""
    return {
        name: tuple(pair for pair in origins if pair != _TIME)
        for name, origins in _origins(view).items()
    }


def columns_of_time(view: Step) -> tuple[str, ...]:
    """The output columns that are computed from the time of the refresh."""
    return tuple(name for name, origins in _origins(view).items() if _TIME in origins)


def _origins(view: Step) -> _Columns:
    done: dict[Step, _Columns] = {}

    def visit(step: Step, references: _References) -> _Columns:
        if step in done:
            return done[step]
        if isinstance(step, Recursion):
            found = _fixpoint(step, references)
        else:
            found = _lineage(step, [visit(each, references) for each in step.inputs], references)
        if not references:  # origins inside a recursion differ between rounds
            done[step] = found
        return found

    def _fixpoint(step: Recursion, references: _References) -> _Columns:
        """The origins of the base, and those that the step adds until no more are found."""
        origins, before = list(visit(step.base, references).values()), None
        while origins != before:
            before = origins
            made = visit(step.step, {**references, step.reference.name: origins}).values()
            origins = [_union(each) for each in zip(origins, made, strict=True)]
        return dict(zip(step.schema, origins, strict=True))

    return visit(view, {})


def _lineage(step: Step, inputs: list[_Columns], references: _References) -> _Columns:
    if isinstance(step, Scan):
        return {name: ((step.table, name),) for name in step.schema}
    if isinstance(step, TimeColumn):
        return {**inputs[0], NOW: (_TIME,)}
    if isinstance(step, Sum):
        left, right = inputs
        pairs = zip(left.items(), right.values(), strict=True)
        return {name: _union([one, other]) for (name, one), other in pairs}
    if isinstance(step, Reference):
        known = references.get(step.name, [])
        return {name: o or () for name, o in zip_longest(step.schema, known) if name is not None}
    below = {name: origins for each in inputs for name, origins in each.items()}
    computed = {name: _read(value, below) for name, value in step.output_expressions.items()}
    # Other columns, such as the number of a grouping set, have no origin.
    return {name: below.get(name, ()) for name in step.schema} | computed


def _read(expression: exp.Expr, below: Mapping[str, Origins]) -> Origins:
    """The origins of a value; columns that a subquery in it defines have none."""
    columns = expression.find_all(exp.Column)
    values = (each for each in columns if not _only_decides(each, expression))
    return _union(below.get(each.name, ()) for each in values)


def _only_decides(column: exp.Column, value: exp.Expr) -> bool:
    """Whether the column is in a clause of a subquery that computes no values; the order of a
    window or an aggregate does contribute to their values."""
    node: exp.Expr | None = column
    while node is not None and node is not value:
        node = node.parent
        if isinstance(node, exp.Exists):
            return True
        if isinstance(node, _CLAUSES) and isinstance(node.parent, exp.Query):
            return True
    return False


def _union(several: Iterable[Origins]) -> Origins:
    return tuple(dict.fromkeys(pair for origins in several for pair in origins))
