"""Random expressions of PostgreSQL over the table of `tables`, by the kind of their value."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

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
# {i} is an expression of a whole number, {n} of a decimal, and so on; {p} a small constant.
_FORMS: dict[str, list[str]] = {
    _INT: [
        "{i} + {i}", "{i} - {i}", "{i} * {p}", "{i} / nullif({i}, 0)", "{i} % 3", "abs({i})",
        "-({i})",
        "length({t})", "strpos({t}, {t})", "ascii({t})", "cardinality({a})", "({a})[{p}]",
        "({a})[{i}]", "array_position({a}, {i})", "extract(year from {d})::int",
        "extract(dow from {s})::int", "extract(isodow from {d})::int", "({d} - {d})", "{n}::int",
        "coalesce({i}, {i})", "nullif({i}, {i})", "greatest({i}, {i})", "least({i}, {i})",
        "CASE WHEN {b} THEN {i} ELSE {i} END", "{i} & 6", "{i} # 3", "num_nulls({i}, {t}, {n})",
        "array_upper({a}, 1)", "regexp_count({t}, 'a')", "regexp_instr({t}, '[a-z]+')",
    ],
    _NUM: [
        "{n} / nullif({n}, 0)", "{n} / 3", "{n} / nullif({i}, 0)", "{i} / 7.0", "round({n}, {p})",
        "round({n})", "trunc({n}, 1)", "{n} + {n}", "{n} - {i}", "{n} * {p}", "abs({n})", "-({n})",
        "ceil({n})", "floor({n})", "sign({n})", "{n} % 0.7", "{n}::numeric(12, 1)", "{i}::numeric",
        "extract(epoch from {s})", "extract(epoch from {d})", "extract(second from {s})",
        "extract(epoch from {s} - {s})", "coalesce({n}, {n})", "greatest({n}, {n})",
        "CASE WHEN {b} THEN {n} ELSE {n} END",
    ],
    _TEXT: [
        "{t} || {t}", "{t} || {i}", "upper({t})", "lower({t})", "initcap({t})", "left({t}, {p})",
        "left({t}, {i})", "right({t}, -{p})", "substring({t}, {p})", "substring({t}, {i})",
        "substring({t} from 2 for {p})", "replace({t}, 'a', 'bb')", "reverse({t})",
        "lpad({t}, 5, 'xy')", "rpad({t}, {p}, '.')", "btrim({t}, ' a')", "trim({t})",
        "split_part({t}, ',', 1)", "regexp_replace({t}, 'a', '<&>')", "repeat({t}, {p})",
        "regexp_replace({t}, '[a-c]+', '-', 'g')", "regexp_replace({t}, '^.', '')",
        "concat({t}, {i}, NULL)", "concat_ws('-', {t}, {t})", "format('%s/%s', {t}, {i})",
        "coalesce({t}, {t})", "nullif({t}, {t})", "to_char({s}, 'YYYY-MM-DD HH24:MI')",
        "to_char({d}, 'FMDay DD Mon')", "to_char({i}, '999')", "to_char({s}, 'IYYY-IW-ID Q')",
        "CASE WHEN {b} THEN {t} ELSE {t} END", "{i}::text", "{d}::text", "md5({t})",
        "array_to_string({w}, ',', '*')", "array_to_string({a}, '+')", "j ->> 'k'",
        "translate({t}, 'abc', 'xy')", "overlay({t} placing 'Z' from 1 for 1)", "({w})[{p}]",
        "substring({t} from '[a-z]+')", "to_hex({i})", "j -> 'b' ->> 'c'",
    ],
    _BOOL: [
        "{i} < {i}", "{n} >= {n}", "{t} = {t}", "{i} <> {i}", "{s} <= {s}", "{d} > {d}", "NOT {b}",
        "{b} AND {b}", "{b} OR {b}", "{i} IS NULL", "{t} IS NOT NULL", "{b} IS NOT TRUE",
        "{t} LIKE 'a%'", "{t} ILIKE '%B%'", "{t} ~ '^[a-z]+$'", "{t} ~* 'a.'", "{t} !~ 'b'",
        "{i} BETWEEN {i} AND {i}", "{i} BETWEEN SYMMETRIC {i} AND {i}", "{i} IN (1, 7, NULL)",
        "{i} = ANY ({a})", "{i} <> ALL ({a})", "{i} < ANY ({a})", "{i} >= ALL ({a})",
        "{a} && {a}", "{a} @> {a}", "{a} <@ {a}", "{w} && {w}", "({i}, {i}) < ({i}, {i})",
        "({i}, {t}) = ({i}, {t})", "{i} IS DISTINCT FROM {i}", "starts_with({t}, 'a')", "j ? 'a'",
        "{t} LIKE ANY (ARRAY['a%', '%b'])", "coalesce({b}, {b})", "{a} = {a}",
        "{i} IN (SELECT q.y FROM t AS q)", "EXISTS (SELECT 1 FROM t AS q WHERE q.x > t.x)",
    ],
    _TS: [
        "{s} + interval '1 month'", "{s} - interval '1 day 2 hours'",
        "{s} + {p} * interval '1 day'",
        "date_trunc('month', {s})", "date_trunc('hour', {s})", "date_trunc('week', {s})",
        "{z} AT TIME ZONE 'Europe/Berlin'", "{z} AT TIME ZONE 'America/New_York'", "{d}::timestamp",
        "date_bin('15 minutes', {s}, timestamp '2001-01-01')", "{d} + interval '1 month'",
        "coalesce({s}, {s})", "{s} + make_interval(days => {p})",
    ],
    _TZ: [
        "{s} AT TIME ZONE 'Europe/Berlin'", "{s} AT TIME ZONE 'UTC'",
        "date_trunc('day', {z}, 'Europe/Berlin')", "{z} + interval '1 hour'",
        "date_bin('6 hours', {z}, timestamptz '2001-01-01 00:00+00')",
    ],
    _DATE: ["{s}::date", "{d} + {p}", "{d} - 1", "coalesce({d}, {d})",
            "({s} + interval '1 day')::date",
            "greatest({d}, {d})"],
    _ARRAY: [
        "{a} || {i}", "{a} || {a}", "array_remove({a}, {i})", "({a})[1:2]", "({a})[2:]",
        "array_append({a}, {i})", "array_prepend({i}, {a})", "array_reverse({a})",
        "array_sort({a})",
        "array_replace({a}, {p}, 0)", "array_positions({a}, {p})", "ARRAY[{i}, {i}]",
    ],
    _WORDS: ["string_to_array({t}, ',')", "{w} || {w}", "string_to_array({t}, '', 'a')",
             "regexp_split_to_array({t}, '[, ]')", "array_sort({w})", "({w})[1:1]"],
}  # fmt: skip
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
