"""The errors for a name that is not found, or is found in several tables."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlglot import exp

from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.spark import DIALECT

_FEW = 12
_HIDDEN = "columns whose names begin with __st_ are the state of a stream table: no query sees them"


def missing(name: exp.Expr, why: str, seen: Sequence[tuple[str, str]]) -> Refusal:
    """The error for a name that means no column.

    Args:
        name: A node of the query's tree.
        why: What its author does not know.
        seen: Tables and columns that may have been meant.
    """
    called = name.sql(DIALECT) if isinstance(name, exp.Column) else name.name
    if _is_too_early(name):
        why = f"'{name.name}' is an output of SELECT, which WHERE comes before"
        fix = "repeat its expression in WHERE, or filter around: SELECT * FROM (…) WHERE …"
    else:
        why = _HIDDEN if name.name.lower().startswith("__st_") else why
        fix = _nearest(name, seen)
    return Refusal(name, f'column "{called}" does not exist', why=why, fix=fix, invalid=True)


def ambiguous(name: exp.Column, tables: Sequence[str]) -> Refusal:
    """The error for a name that means a column of each of some tables."""
    distinct = list(dict.fromkeys(tables))
    if len(distinct) == 1:
        why, fix = f"{distinct[0]} has several columns of this name", "give each its own name"
    else:
        why = f"{' and '.join(distinct)} have a column of this name"
        fix = f"qualify it, for example {distinct[0]}.{name.name}"
    return Refusal(
        name, f'column "{name.sql(DIALECT)}" is ambiguous', why=why, fix=fix, invalid=True
    )


def _is_too_early(name: exp.Expr) -> bool:
    """Whether it stands in WHERE, and names an output of the same SELECT."""
    where = name.find_ancestor(exp.Where, exp.Select)
    select = where.parent if isinstance(where, exp.Where) else None
    if name.text("table") or not isinstance(select, exp.Select):
        return False
    return name.name.lower() in (each.alias.lower() for each in select.expressions)


def _nearest(name: exp.Expr, seen: Sequence[tuple[str, str]]) -> str:
    known = dict[str, tuple[str, str]]()
    for table, column in seen:
        known.setdefault(column.lower(), (table, column))
    near = difflib.get_close_matches(name.name.lower(), sorted(known), n=3)
    if near:
        meant = (".".join(known[e]) if name.text("table") else known[e][1] for e in near)
        return f"did you mean {' or '.join(meant)}?"
    few = 0 < len(known) <= _FEW
    names = ", ".join(column for _, column in known.values())
    return f"use one of {names}" if few else "use a column of the tables in FROM"
