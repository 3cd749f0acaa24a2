"""Which columns of a source's change hold the keys of all groups that it touches.

Through projections, filters and inner joins, a row that came or went is made of one that came to or
went from the source that moved:

    Δ σ(π(S) ⋈ R)  =  σ(π(ΔS) ⋈ R)          only S moved, and it is read once

So a key that is a column of S has, in every touched group, a value that it has in ΔS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from sqlglot import exp

from dagster_streamtables.compiler.operators import Filter, Join, Operator, Project, Scan, Step


def keys_in_change(
    rows: Operator, keys: Sequence[str], moved: Set[str]
) -> tuple[str, Mapping[str, str]] | None:
    """The source that moved, and for each key its column there; None where that cannot be told.

    Args:
        rows: What is grouped.
        keys: By which columns.
        moved: The sources of which rows came or went.
    """
    found = [_origin(rows, key) for key in keys]
    tables = {origin[0] for origin in found if origin is not None}
    if None in found or len(tables) != 1 or tables != set(moved):
        return None
    [table] = tables
    if _times(rows, table) != 1:
        return None
    columns = {key: origin[1] for key, origin in zip(keys, found, strict=True) if origin}
    return table, columns


def _origin(rows: Step, name: str) -> tuple[str, str] | None:
    match rows:
        case Scan():
            return rows.table, name
        case Filter():
            return _origin(rows.input, name)
        case Project():
            expression = dict(rows.outputs)[name]
            simple = isinstance(expression, exp.Column)
            return _origin(rows.input, expression.name) if simple else None
        case Join():
            return _origin(rows.left if name in rows.left.schema else rows.right, name)
        case _:
            return None


def _times(rows: Step, table: str) -> int:
    """How often a source is read."""
    if isinstance(rows, Scan):
        return int(rows.table == table)
    return sum(_times(each, table) for each in rows.inputs)
