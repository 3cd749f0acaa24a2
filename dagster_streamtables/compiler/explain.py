"""A tree of steps for people: one line each, inputs indented, a repeated subtree by its line."""

from __future__ import annotations

from dagster_streamtables.compiler.operators import Operator, Step
from dagster_streamtables.compiler.share import rebuild


def outline(root: Step, *, laws: bool = False) -> str:
    """
    Args:
        laws: Say for each operator which law serves it, and what its change reads.
    """
    lines: list[str] = []
    written: dict[Step, int] = {}

    def write(step: Step, depth: int) -> None:
        indent = "  " * depth
        if step in written and step.inputs:
            lines.append(f"{indent}line {written[step]} again")
            return
        law = f"  [{step.law}: reads {step.cost}]" if laws and isinstance(step, Operator) else ""
        lines.append(f"{indent}{step.explain()}{law}")
        written[step] = len(lines)
        for each in step.inputs:
            write(each, depth + 1)

    write(rebuild(root), 0)
    return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines, start=1))
