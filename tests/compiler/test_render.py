"""What a step is written as."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp, parse_one

from dagster_streamtables.compiler.operators.algebra import Step
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.linear import Filter
from dagster_streamtables.compiler.operators.recursion import Recursion, Reference
from dagster_streamtables.compiler.operators.step_trees import render

COLUMNS = (("id", exp.DataType.build("int")),)


def test_what_mentions_a_recursion_is_written_inside_it_however_often_it_is_read() -> None:
    """Beside it, its name means nothing."""
    base, reference = Scan("t", COLUMNS), Reference("r", COLUMNS)
    twice = Filter(reference, exp.condition("id > 1")) + Filter(reference, exp.condition("id < 0"))

    tree = parse_one(render(Recursion(base, twice, reference)), dialect="spark")

    [recursion] = tree.find_all(exp.CTE)
    assert recursion.alias == "r"
    assert [each.name for each in recursion.find_all(exp.Table)].count("r") == 2


def test_every_step_inherits_the_cached_hash() -> None:
    """A dataclass without ``eq=False`` has its own, which walks the tree at every call."""

    def below(kind: type[Step]) -> Iterator[type[Step]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    assert not [each for each in below(Step) if {"__eq__", "__hash__"} & vars(each).keys()]
