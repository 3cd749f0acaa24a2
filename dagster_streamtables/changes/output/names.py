"""The names of the leading columns, and how a reader's name of a column is understood."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation


@dataclass(frozen=True)
class LeadingNames:
    """What the columns before those of the relation are called."""

    timestamp: str
    progressed: str
    diff: str
    state: str


NAMES = {
    "delta": LeadingNames("_timestamp", "_progressed", "_diff", "_state"),
    "materialize": LeadingNames("mz_timestamp", "mz_progressed", "mz_diff", "mz_state"),
}
"""In the manner of Delta's Change Data Feed, or as Materialize names them."""

DIFFS = frozenset(names.diff for names in NAMES.values())


def leading_names(names: str) -> LeadingNames:
    if names not in NAMES:
        raise RefusedOperation(
            f'names="{names}" is not known', fix='write names="delta" or names="materialize"'
        )
    return NAMES[names]


def column_of(name: str, columns: Sequence[str]) -> str | None:
    """The column that a reader means, if there is one.

    As in Spark, case does not count; but where two columns differ by case alone, it does.
    """
    if name in columns:
        return name
    alike = [column for column in columns if column.casefold() == name.casefold()]
    if len(alike) > 1:
        raise RefusedOperation(
            f'column "{name}" is ambiguous', fix=f"write {_either(alike)}, in this case exactly"
        )
    return alike[0] if alike else None


def unknown_column(name: str, columns: Sequence[str]) -> RefusedOperation:
    near = difflib.get_close_matches(name, columns, n=3)
    there = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    return RefusedOperation(
        f'column "{name}" does not exist',
        fix=f"did you mean {_either(near)}?" if near else f"the columns are: {there}",
    )


def is_name(text: str) -> bool:
    """Whether it can be meant as the name of a column; else it is an expression."""
    return re.fullmatch(r"[^\W\d]\w*", text) is not None


def check_distinct(
    names: str, columns: Sequence[str], kept: Sequence[str], added: Sequence[str]
) -> None:
    """Refuse columns that are called as others of the output are.

    Args:
        names: The manner in which the leading columns are named.
        columns: Those of the relation.
        kept: Those of them that are given out under their own names.
        added: What else is given out.
    """
    twice = _twice(columns)
    if twice is not None:
        raise RefusedOperation(
            f'the relation has two columns "{twice}"',
            fix=f"give one of them another name, in a SELECT: {_alias_hint(twice)}",
        )
    taken = {name.casefold() for name in added}
    alike = [name for name in kept if name.casefold() in taken]
    alike += [name for name in columns if name.casefold() == WEIGHT]
    if alike:
        raise RefusedOperation(
            f'the relation already has a column "{alike[0]}"',
            why="a column of this name is added, to say when and how a row changed",
            fix=_way_out(names, alike[0]),
        )


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _way_out(names: str, column: str) -> str:
    other = next(each for each in NAMES if each != names)
    leads = column.casefold() in vars(NAMES[names]).values()
    instead = f'choose names="{other}", or ' if leads else ""
    return f"{instead}give the column another name, in a SELECT: {_alias_hint(column)}"


def _alias_hint(column: str) -> str:
    quoted = column.replace("`", "``")
    return f"SELECT …, `{quoted}` AS another_name FROM …"


def _either(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)
