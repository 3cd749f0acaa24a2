"""Which kinds of nodes a syntax tree has, to leave out the steps that have nothing to do."""

from __future__ import annotations

from functools import cache

from sqlglot import exp


def kinds_in(tree: exp.Expr) -> set[type]:
    """The classes of the nodes, and all classes that these are derived from."""
    found = set[type]()
    for kind in {type(node) for node in tree.walk()}:
        found |= _bases(kind)
    return found


@cache
def _bases(kind: type) -> frozenset[type]:
    return frozenset(kind.__mro__)
