"""Random expressions of PostgreSQL over the table of `tables`, by the kind of their value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from compiler.casefile import tables

_INT, _NUM, _TEXT, _BOOL = "int", "num", "text", "bool"
_TS, _TZ, _DATE, _ARRAY, _WORDS = "ts", "tz", "date", "array", "words"
KINDS = (_INT, _NUM, _TEXT, _BOOL, _TS, _TZ, _DATE, _ARRAY, _WORDS)
_COLUMNS = {
    _INT: ["x", "y", "id"], _NUM: ["n", "m", "n"], _TEXT: ["s", "u"], _BOOL: ["f"], _TS: ["ts"],
    _TZ: ["tz"], _DATE: ["dt"], _ARRAY: ["arr"], _WORDS: ["sarr"],
}  # fmt: skip
_CONSTANTS = {
    _INT: ["0", "1", "2", "3", "-7", "12"], _NUM: ["0.5", "1.25", "7.0", "100.0", "0.003", "1e2"],
    _TEXT: ["'a'", "''", "'b,c'", "'A😀'", "'x y'"], _BOOL: ["true", "false"],
    _TS: ["timestamp '2024-02-29 12:30:00'", "timestamp '2000-01-01'"],
    _TZ: ["timestamptz '2024-03-31 00:30:00+00'"],
    _DATE: ["date '2024-01-31'", "date '2023-12-31'"],
    _ARRAY: ["ARRAY[1, 2]", "ARRAY[7]", "'{}'::int[]"], _WORDS: ["ARRAY['a', 'z']"],
}  # fmt: skip
_FORMS = {kind: row for kind, [row] in tables("forms.txt", Path(__file__).parent).items()}
_LETTERS = {"i": _INT, "n": _NUM, "t": _TEXT, "b": _BOOL, "s": _TS, "z": _TZ, "d": _DATE,
            "a": _ARRAY, "w": _WORDS}  # fmt: skip


def expression(random: Random, kind: str, depth: int) -> str:
    """An expression of a kind, with forms inside of forms up to a depth."""
    if depth <= 0 or random.random() < 0.1:
        known = _COLUMNS[kind] if random.random() < 0.75 else _CONSTANTS[kind]
        return random.choice(known)
    form = random.choice(_FORMS[kind])
    return _filled(form, lambda letter: _inner(random, letter, depth))


def _inner(random: Random, letter: str, depth: int) -> str:
    if letter == "p":
        return str(random.randint(1, 3))
    found = expression(random, _LETTERS[letter], depth - random.choice((1, 1, 2)))
    return found if found.isidentifier() else f"({found})"


def _filled(form: str, fill: Callable[[str], str]) -> str:
    out, rest = "", form
    while rest:
        if rest[0] == "{" and rest[2:3] == "}" and rest[1] != "'":
            out, rest = out + fill(rest[1]), rest[3:]
        else:
            out, rest = out + rest[0], rest[1:]
    return out
