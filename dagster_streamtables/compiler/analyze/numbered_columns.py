"""Numbers of columns where sqlglot's qualifier takes them for constants.

    ORDER BY (2) DESC LIMIT 1        ORDER BY 2 DESC LIMIT 1
    GROUP BY (1)                     GROUP BY 1
    GROUP BY ROLLUP (1), (2)         GROUP BY ROLLUP (a), b, where a and b are the first outputs

Spark drops parentheses when it parses; of a number with a sign or a type (2L) it makes a constant.
"""

from __future__ import annotations

from sqlglot import exp


def open_numbers(tree: exp.Expr) -> None:
    for order in tree.find_all(exp.Order):
        if isinstance(order.parent, exp.Query):
            for item in order.expressions:
                _open(item.this)
    for group in tree.find_all(exp.Group):
        for key in group.expressions:
            _open(key)
        if isinstance(group.parent, exp.Select):
            _spell_out(group, group.parent)


def _open(item: exp.Expr) -> None:
    inner = item.unnest()
    if inner is not item and _is_number(inner):
        item.replace(inner)


def _spell_out(group: exp.Group, select: exp.Select) -> None:
    """Replace the numbers in sets of keys by what they mean."""
    if any(each.is_star for each in select.expressions):
        return
    for sets in list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)):
        for number in list(sets.find_all(exp.Literal)):
            if _is_number(number) and isinstance(number.parent, _KEYS):
                for meant in select.expressions[int(number.name) - 1 : int(number.name)]:
                    number.replace(meant.unalias().copy())


_KEYS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)


def _is_number(item: exp.Expr) -> bool:
    return isinstance(item, exp.Literal) and item.is_int
