"""``to_char``, ``to_date`` and ``to_timestamp``: the format words of Postgres."""

from __future__ import annotations

import re
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules import datetimes
from dagster_streamtables.compiler.dialect.rules.instants import later
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_text,
)

_JAVA = {
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "DD": "dd", "HH24": "HH", "HH12": "hh", "HH": "hh",
    "MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "DDD": "DDD", "Q": "q", "AM": "a",
    "PM": "a", "Mon": "MMM", "Dy": "E", "FMMonth": "MMMM", "FMDay": "EEEE", "FMMM": "M",
    "FMDD": "d", "FMHH24": "H", "FMHH12": "h", "FMHH": "h", "FMMI": "m", "FMSS": "s",
}  # fmt: skip
_MADE = {
    "Month": "RPAD(DATE_FORMAT(_x, 'MMMM'), 9)", "Day": "RPAD(DATE_FORMAT(_x, 'EEEE'), 9)",
    "MONTH": "RPAD(UPPER(DATE_FORMAT(_x, 'MMMM')), 9)", "MON": "UPPER(DATE_FORMAT(_x, 'MMM'))",
    "DAY": "RPAD(UPPER(DATE_FORMAT(_x, 'EEEE')), 9)", "DY": "UPPER(DATE_FORMAT(_x, 'E'))",
    "month": "RPAD(LOWER(DATE_FORMAT(_x, 'MMMM')), 9)", "mon": "LOWER(DATE_FORMAT(_x, 'MMM'))",
    "day": "RPAD(LOWER(DATE_FORMAT(_x, 'EEEE')), 9)", "dy": "LOWER(DATE_FORMAT(_x, 'E'))",
    "FMMONTH": "UPPER(DATE_FORMAT(_x, 'MMMM'))", "FMDAY": "UPPER(DATE_FORMAT(_x, 'EEEE'))",
    "FMmonth": "LOWER(DATE_FORMAT(_x, 'MMMM'))", "FMday": "LOWER(DATE_FORMAT(_x, 'EEEE'))",
    "am": "LOWER(DATE_FORMAT(_x, 'a'))", "pm": "LOWER(DATE_FORMAT(_x, 'a'))",
    "IW": "LPAD(EXTRACT(WEEK FROM _x), 2, '0')",
    "IYYY": "LPAD(EXTRACT(YEAROFWEEK FROM _x), 4, '0')",
    "WW": "LPAD((DAYOFYEAR(_x) - 1) DIV 7 + 1, 2, '0')", "D": "CAST(DAYOFWEEK(_x) AS STRING)",
    "ID": "CAST(WEEKDAY(_x) + 1 AS STRING)",
}  # fmt: skip
_WORDS = sorted({*_JAVA, *_MADE}, key=len, reverse=True)
_NUMERIC = "|".join(word for word in _WORDS if word == word.upper() and
                    word not in "MONTH MON DAY DY AM PM")  # fmt: skip
_CASES = re.compile(
    f'(?P<name>"[^"]*"|FM(?:month|day)|month|mon|day|dy|am|pm)|{_NUMERIC}', re.IGNORECASE
)
"""Quoted text and words whose case matters, and words of numbers."""
_PIECES = re.compile(rf'"([^"]*)"|(?:TM)?({"|".join(_WORDS)})|([^A-Za-z"\\]+)')
_PARSED = {"YYYY", "MM", "DD", "HH24", "MI", "SS"}
_NUMBER = re.compile(r"(FM|fm)?((?:[09],?)*[09])(?:\.(0+))?")
_FIX = "use words such as YYYY, MM, DD, HH24, MI, SS, Mon, Month, Day"


def pieces_of(format_: str) -> list[tuple[str, str]] | None:
    """The words and the other characters of a format; None if something in it is not known.

    >>> pieces_of('DD.MM "of" YYYY')
    [('word', 'DD'), ('text', '.'), ('word', 'MM'), ('text', ' of '), ('word', 'YYYY')]
    """
    found: list[tuple[str, str]] = []
    position, upper = 0, _upper_words(format_)
    while position < len(format_):
        match = _PIECES.match(upper, position)
        if match is None:
            return None
        kind, text = ("word", match[2]) if match[2] else ("text", match[1] or match[3] or "")
        if kind == "word" and format_[position:].upper().startswith("TM") and "FM" + text in _WORDS:
            text = "FM" + text  # TM does not pad either
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + text)
        else:
            found.append((kind, text))
        position = match.end()
    return found


def _upper_words(format_: str) -> str:
    """Words of numbers in upper case: ``yyyy`` is ``YYYY``, but ``mon`` is not ``MON``."""
    return _CASES.sub(lambda found: found["name"] or found[0].upper(), format_)


def to_char(node: exp.Expr, query: Query) -> exp.Expr:
    value, format_ = node.expressions
    written = literal_text(format_)
    if written is None:
        raise query.refusal(node, "the words of a format differ in Spark", "write a constant")
    kind = query.require(node, value, (*DATES, *WHOLE, Kind.DECIMAL),
                         "this needs a date or a decimal",
                         "cast it to DATE, TIMESTAMP or NUMERIC")  # fmt: skip
    if kind not in DATES:
        return _number(node, value, written, query)
    pieces = pieces_of(written)
    if pieces is None:
        raise query.refusal(node, "the words of a format differ in Spark", _FIX)
    return _concat_pieces(value, pieces, local=kind is Kind.LOCAL)


def _concat_pieces(value: exp.Expr, pieces: list[tuple[str, str]], *, local: bool) -> exp.Expr:
    parts: list[exp.Expr] = []
    java = ""
    for kind, text in [*pieces, ("end", "")]:
        if kind == "word" and text in _JAVA:
            java += _JAVA[text]
        elif kind == "text" and not re.search("['A-Za-z]", text):
            java += text.replace("[", "'['").replace("]", "']'").replace("#", "'#'")
        else:
            if java:
                plain = from_template("DATE_FORMAT(_x, _f)", x=value, f=java)
                parts.append(datetimes.format_local(value, java) if local else plain)
                java = ""
            if kind == "word":
                of_time = text.upper() in ("AM", "PM")
                part = datetimes.time_of if of_time else datetimes.date_of
                parts.append(from_template(_MADE[text], x=part(value) if local else value))
            elif kind == "text":
                parts.append(exp.Literal.string(text))
    return parts[0] if len(parts) == 1 else call("CONCAT", *parts)


def _number(node: exp.Expr, value: exp.Expr, written: str, query: Query) -> exp.Expr:
    """A number by a pattern of 9, 0, commas and a point: the rest is `#` if it is too large."""
    found = _NUMBER.fullmatch(written)
    groups = found[2].split(",") if found else []
    if found is None or any(len(each) != 3 for each in groups[1:]) or "09" in found[2]:
        raise query.refusal(
            node, "only patterns of 9, 0, commas every three digits and .0 are translated",
            "write one such as FM999,990.00",
        )  # fmt: skip
    places = len(found[3] or "")
    whole = found[2].replace("9", "#")
    if "," in whole and len(groups[0]) == 0:
        whole = whole[1:]
    java = whole + ("." + "0" * places if places else "")
    full = re.sub("[09]", "#", found[2]) + ("." + "#" * places if places else "")
    digits = sum(len(each) for each in groups)
    template = (
        f"CASE WHEN ABS(ROUND(_x, {places})) < 1{'0' * digits} "
        f"THEN FORMAT_NUMBER(ROUND(_x, {places}), _f) "
        "WHEN _x < 0 THEN CONCAT('-', _o) WHEN _x >= 0 THEN _o END"
    )
    text = from_template(template, x=value, f=java, o=full)
    if found[1]:
        return text
    return from_template("LPAD(_t, _n)", t=text, n=len(written) + 1)


def _parse_date(node: exp.Expr, query: Query, *, name: str) -> exp.Expr:
    """A text as a date, by a format of numbers."""
    if len(node.expressions) == 1:
        return _from_seconds(node, query)
    written = literal_text(node.expressions[1])
    pieces = pieces_of(written) if written is not None else None
    words = {text for kind, text in pieces or [] if kind == "word"}
    if pieces is None or not words <= _PARSED or not words:
        raise query.refusal(node, *datetimes.ONLY_NUMBERS)
    java = "".join(_JAVA[text] if kind == "word" else text for kind, text in pieces)
    found = call(name, node.expressions[0].copy(), java)
    return later(found) if name == "TO_TIMESTAMP" else found


def _from_seconds(node: exp.Expr, query: Query) -> exp.Expr:
    value = node.expressions[0]
    if query.kind(value) in WHOLE:
        return from_template("TIMESTAMP_SECONDS(_x)", x=value)
    return from_template(
        "TIMESTAMP_MICROS(CAST(RINT(CAST(_x AS DOUBLE) * 1000000) AS BIGINT))", x=value
    )


CALLS: dict[str, Rule] = {
    "to_char": to_char, "to_date": partial(_parse_date, name="TO_DATE"),
    "to_timestamp": partial(_parse_date, name="TO_TIMESTAMP"),
}  # fmt: skip
