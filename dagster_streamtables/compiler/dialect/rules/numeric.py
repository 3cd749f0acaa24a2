"""Quotients and averages of ``numeric``, to the digit that Postgres rounds them to.

A quotient has at least 16 significant digits, so the place at which it is rounded depends on its
value: 10 / 3 has 16 digits after the point, 1 / 3 has 20 and 100000 / 3 has 12. Postgres keeps
digits in groups of four; with w the group of the first digit and f its value from 1 to 9999,
a quotient has ``16 - 4 * (w₁ - w₂ - (f₁ <= f₂))`` digits after the point.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.digits import MOST, Digits, of_type
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_int

DIGITS = "its last digits are rounded: Postgres keeps more digits than the 38 of Spark's decimals"


def quotient(a: exp.Expr, b: exp.Expr, left: Digits, right: Digits, result: Digits) -> exp.Expr:
    """``a / b`` as Postgres rounds it, with as many digits as `result`.

    Raises in Spark what Postgres raises if b is 0, and where the quotient has more than 38 digits.
    """
    values = {weight: _value(weight, left, right, result) for weight in _weights(left, right)}
    smallest = values[min(values)]
    large = {weight: value for weight, value in values.items() if value != smallest}
    branches = " ".join(f"WHEN {weight} THEN {value}" for weight, value in large.items())
    group = f"FLOOR(({_group('st_n', left)} - {_divisor_group(b, right)} - 1) / 10000)"
    chosen = f"CASE {group} {branches} ELSE {smallest} END" if large else smallest
    if a.find(exp.Query) or b.find(exp.Query):
        return _repeat_operands(
            chosen, exp.cast(a, _type(left.scale)), exp.cast(b, _type(right.scale))
        )
    template = (
        f"ELEMENT_AT(ZIP_WITH(ARRAY(CAST(_a AS {_type(left.scale)})), "
        f"ARRAY(CAST(_b AS {_type(right.scale)})), "
        f"(st_n, st_d) -> {chosen}), 1)"
    )
    return from_template(template, a=a, b=b)


def _repeat_operands(chosen: str, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """The expression with its operands in place of names: Spark takes no subquery in a function
    with a lambda. It computes equal subqueries once, and so does a compiled query."""
    template = re.sub(r"\bst_([nd])\b", r"_st_\1", chosen)
    return from_template(template, st_n=a, st_d=b)


def note_overflow(query: Query, *found: Digits) -> None:
    """Note what Spark's decimals cannot hold."""
    if not all(each.fits for each in found):
        query.note(DIGITS)


def note_quotient(
    node: exp.Expr, query: Query, left: Digits, right: Digits, result: Digits
) -> None:
    """Note a quotient whose smallest values have more digits in Postgres, unless they are rounded
    away."""
    least = min(_weights(left, right))
    more = left.varying or right.varying or 16 - 4 * least > result.scale
    if more and not _has_few_places(node):
        query.note(DIGITS)


def _has_few_places(node: exp.Expr) -> bool:
    """Whether nothing is left of the digits after the twelfth place."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Window | exp.Filter | exp.Neg):
        around = around.parent
    if isinstance(around, exp.Round):
        places = literal_int(around.args.get("decimals"))
        return around.args.get("decimals") is None or (places is not None and places <= 12)
    found = of_type(around.to) if isinstance(around, exp.Cast) else None
    return found is not None and found.scale <= 12


def _value(weight: int, left: Digits, right: Digits, result: Digits) -> str:
    known = [each.scale for each in (left, right) if not each.varying]
    places = min(max([16 - 4 * weight, 0, *known]), result.scale)
    kept = places if places >= 6 else 16
    width = MOST - kept + left.scale - right.scale
    type_ = _type(result.scale)
    if not max(left.scale, 1) <= width <= MOST:
        return f"CAST(ROUND(st_n / st_d, {places}) AS {type_})"
    whole = MOST if left.varying else min(left.whole + left.scale, MOST)
    if whole <= width:
        return f"CAST({_quotient_template('CAST', width, places, left)} AS {type_})"
    exact = f"CAST({_quotient_template('TRY_CAST', width, places, left)} AS {type_})"
    # 12345678901234.5 / 98765432109876.5 would have 20 digits after the point, and has 18.
    return f"COALESCE({exact}, CAST({_quotient_template('CAST', whole, places, left)} AS {type_}))"


def _quotient_template(cast: str, width: int, places: int, left: Digits) -> str:
    """The quotient, rounded once at `places`: the type of the dividend decides."""
    exact = f"{cast}(st_n AS DECIMAL({width}, {left.scale})) / st_d"
    return exact if places >= 6 else f"ROUND({exact}, {places})"


def _weights(left: Digits, right: Digits) -> list[int]:
    """The weights that a quotient may have, those of larger ones first."""
    most = _groups(left.whole) - 1 + _groups(right.scale)
    least = -_groups(left.scale) - _groups(right.whole)
    return list(range(most, least - 1, -1))


def _groups(digits: int) -> int:
    return -(-digits // 4)


def _group(name: str, digits: Digits) -> str:
    """10000 * w + f, from the digits of a number that is made whole."""
    below = _groups(digits.scale)
    if below <= 2:
        return _group_at_scale(name, below)
    # A large number times a power of ten would have more than 38 digits.
    large = f"WHEN ABS({name}) >= 1 THEN {_group_at_scale(f'FLOOR(ABS({name}))', 0)}"
    return f"CASE {large} ELSE {_group_at_scale(name, below)} END"


def _group_at_scale(name: str, below: int) -> str:
    whole = f"ABS({name})" if not below else f"ABS({name}) * 1{'0' * 4 * below}"
    text = f"CAST(CAST({whole} AS DECIMAL({MOST}, 0)) AS STRING)"
    first = f"CAST(LEFT({text}, (LENGTH({text}) - 1) % 4 + 1) AS INT)"
    return f"(((LENGTH({text}) - 1) DIV 4 - {below}) * 10000 + {first})"


def _divisor_group(b: exp.Expr, digits: Digits) -> str:
    value = literal_int(b)
    if value is None or value == 0:
        return _group("st_d", digits)
    text = str(abs(value))
    first = (len(text) - 1) % 4 + 1
    return str((len(text) - 1) // 4 * 10000 + int(text[:first]))


def _type(scale: int) -> str:
    return f"DECIMAL({MOST}, {scale})"
