"""Print a tree of steps: one line per step, inputs indented, repeated subtrees by line number."""

from __future__ import annotations

from dataclasses import dataclass

from dagster_streamtables.compiler.operators import Operator, Step
from dagster_streamtables.compiler.operators.interning import rebuild


@dataclass(frozen=True)
class OperatorLine:
    """One line of an outline."""

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
    """
    Args:
        root: The tree.
        laws: Add each operator's law, and what its change reads.
    """
    found: list[OperatorLine] = []
    written: dict[Step, int] = {}

    def write(step: Step, depth: int) -> None:
        number = len(found) + 1
        if step in written and step.inputs:
            found.append(OperatorLine(number, depth, f"line {written[step]} again"))
            return
        said = (step.law, step.cost) if laws and isinstance(step, Operator) else ()
        found.append(OperatorLine(number, depth, step.explain(), *said))
        written[step] = number
        for each in step.inputs:
            write(each, depth + 1)

    write(rebuild(root), 0)
    return found


def outline(root: Step, *, laws: bool = False) -> str:
    """The lines as one text; see `lines`."""
    return "\n".join(map(str, lines(root, laws=laws)))
