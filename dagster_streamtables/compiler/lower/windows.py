"""Window functions: each becomes a column, computed before the expression around it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.lower.scope import Scope, rewrite_expression
from dagster_streamtables.compiler.operators import (
    Operator,
    Project,
    Windowed,
    column,
    type_of,
    typed,
)


def with_windows(
    rows: Operator, parts: list[exp.Expr], scope: Scope
) -> tuple[Operator, list[exp.Expr]]:
    """The rows with a column for each window, and the expressions over those columns."""
    found = dict.fromkeys(node for part in parts for node in part.find_all(exp.Window))
    if not found:
        return rows, parts
    rows, keys = _with_keys(rows, list(found), scope)
    held: dict[exp.Expr, exp.Expr] = {}
    together: dict[tuple[str, ...], list[tuple[str, exp.Expr]]] = {}
    for i, node in enumerate(found):
        name = scope.unique_name(f"win_{i}")
        by = tuple(dict.fromkeys(keys[each] for each in node.args.get("partition_by") or []))
        call = node.copy()
        call.set("partition_by", [column(key) for key in by])
        together.setdefault(by, []).append((name, typed(call, type_of(node))))
        held[node] = typed(column(name), type_of(node))
    for by, outputs in together.items():
        rows = Windowed(rows, by, tuple(outputs))

    def settle(node: exp.Expr) -> exp.Expr:
        return held[node].copy() if node in held else node

    return rows, [rewrite_expression(part, settle) for part in parts]


def _with_keys(
    rows: Operator, windows: list[exp.Expr], scope: Scope
) -> tuple[Operator, dict[exp.Expr, str]]:
    """Add a column for each expression in PARTITION BY."""
    partitions = dict.fromkeys(k for each in windows for k in each.args.get("partition_by") or [])
    keys: dict[exp.Expr, str] = {k: k.name for k in partitions if isinstance(k, exp.Column)}
    made = [key for key in partitions if key not in keys]
    if not made:
        return rows, keys
    keys |= {key: scope.unique_name(f"part_{i}") for i, key in enumerate(made)}
    kept = ((n, typed(column(n), t)) for n, t in rows.schema.items())
    return Project(rows, (*kept, *((keys[key], key) for key in made))), keys


def inline_window(part: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """``OVER w`` with the definition of ``w`` from the WINDOW clause."""

    def settle(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window) and node.alias.lower() in named:
            meant = named[node.alias.lower()]
            new = node.copy()
            new.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                new.set(key, meant.copy().args.get(key))
            return typed(new, type_of(node))
        return node

    return rewrite_expression(part, settle)
