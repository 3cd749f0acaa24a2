"""Translate regular expressions, SIMILAR TO, and date formats of other dialects to Java's.

Only patterns that match the same in every string are translated; the result is None for others.
"""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"[*+?]|\{\d+(,\d*)?\}")
_CLASSES = {"d": "0-9", "s": r"\t\n\f\r ", "w": "A-Za-z0-9_"}
_POSIX_CLASSES = {"d": "0-9", "s": r"\t\n\x0B\f\r "}  # the database defines what a letter is
_NAMED = {"digit": "0-9", "xdigit": "0-9A-Fa-f", "space": r"\t\n\x0B\f\r ", "blank": r"\t "}
_LETTERS = {
    "alpha": r"\p{IsAlphabetic}", "alnum": r"\p{IsAlphabetic}0-9", "upper": r"\p{IsUppercase}",
    "lower": r"\p{IsLowercase}",
}  # fmt: skip
_WORD = r"\p{IsAlphabetic}0-9_"
_AFTER, _NO_AFTER = f"(?<=[{_WORD}])", f"(?<![{_WORD}])"
_BEFORE, _NO_BEFORE = f"(?=[{_WORD}])", f"(?![{_WORD}])"
_BOUNDS = {
    "m": _NO_AFTER + _BEFORE, "M": _AFTER + _NO_BEFORE,
    "y": f"(?:{_NO_AFTER}{_BEFORE}|{_AFTER}{_NO_BEFORE})",
    "Y": f"(?:{_AFTER}{_BEFORE}|{_NO_AFTER}{_NO_BEFORE})",
}  # fmt: skip
_ITEM = r"\\[dstnrw\\\]\-.^$/]|\[:[a-z]+:\]|[^\\\[\]&]"
_BRACKETS = re.compile(rf"\[(?P<negated>\^?)(?P<inside>(?:{_ITEM})+)\]")
_ATOMS = re.compile(rf"\\.|{_BRACKETS.pattern}", re.DOTALL)
_WITH_LETTERS = re.compile(r"\\[wWmMyY]|\[:(alpha|alnum|upper|lower):\]")
_TOKEN = re.compile(
    rf"(?P<quantifier>{_QUANTIFIER.pattern})|\\(?P<escape>.)|(?P<class>{_BRACKETS.pattern})"
    r"|\((?:\?[:=!])?|[^\\\[\]{}]",
    re.DOTALL,
)
_OPENINGS = ("^", "|", "(", "(?:", "(?=", "(?!", r"\z")
_FORMATS = {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss"}


def java_pattern(pattern: str, *, posix: bool, letters: bool = False) -> str | None:
    """A Java regular expression that matches in the same strings as a pattern of Postgres (`posix`)
    or RE2. If `letters`, the letters of a posix pattern are those of Unicode.

    >>> java_pattern("^a.+$", posix=True), java_pattern("[[:alpha:]]", posix=True)
    ('(?s)^a.+\\\\z', None)
    """
    classes, named = (_POSIX_CLASSES, _NAMED) if posix else (_CLASSES, {})
    bounds: dict[str, str] = {}
    if posix and letters:
        classes, named = {**classes, "w": _WORD}, {**named, **_LETTERS}
        bounds = {**_BOUNDS, "A": r"\A", "Z": r"\z"}
    out: list[str] = []
    at, can_repeat = 0, False
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        java = _java_token(token, classes, named, bounds) if token is not None else None
        if token is None or java is None or (token["quantifier"] and not can_repeat):
            return None
        can_repeat = not token["quantifier"] and java not in (*_OPENINGS, *bounds.values())
        out.append(java)
        at = token.end()
    # Without a flag, Java's dot stops at five kinds of line breaks.
    return ("(?s)" if posix else "(?d)") * ("." in out) + "".join(out)


def _java_token(
    token: re.Match[str], classes: dict[str, str], named: dict[str, str], bounds: dict[str, str]
) -> str | None:
    escape = token["escape"]
    if token["class"]:
        return _java_class(token, classes, named)
    if not escape:
        return r"\z" if token[0] == "$" else token[0]
    if escape in bounds:
        return bounds[escape]
    if escape.lower() in classes:
        return f"[{'^' if escape.isupper() else ''}{classes[escape.lower()]}]"
    return None if escape.isalnum() and escape not in "ntr" else token[0]


def _java_class(token: re.Match[str], classes: dict[str, str], named: dict[str, str]) -> str | None:
    texts: dict[str, str | None] = {f"[:{name}:]": java for name, java in named.items()}
    texts |= {f"\\{letter}": classes.get(letter) for letter in "dsw"}
    parts: list[str] = re.findall(r"\\.|\[:[a-z]+:\]|.", token["inside"], re.DOTALL)
    java = [texts.get(each) if each[:2] == "[:" else texts.get(each, each) for each in parts]
    known = [each for each in java if each is not None]
    return f"[{token['negated']}{''.join(known)}]" if len(known) == len(java) else None


def posix_pattern(similar: str) -> str:
    """A pattern that matches in the strings that are SIMILAR TO another (SQL:1999, 8.6).

    >>> posix_pattern("a.%|[_%]_")
    '^(?:a\\\\..*|[_%].)$'
    """
    parts: list[str] = re.findall(r"\\.|\[[^\]]*\]|.", similar, re.DOTALL)
    own = {"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}
    return f"^(?:{''.join(own.get(part, part) for part in parts)})$"


def one_way(pattern: str) -> bool:
    """Whether the longest match is always the first one tried."""
    plain = _ATOMS.sub("x", pattern)
    return "|" not in plain and len(_QUANTIFIER.findall(plain)) <= 1


def matches_nothing(pattern: str) -> bool:
    r"""Whether the empty string may be a match, as of ``\s*``."""
    plain = _ATOMS.sub("x", re.sub(r"\\[mMyYAZ]", "", pattern))
    needed = re.sub(r"[^()^$|](\*|\?|\{0(,\d*)?\})", "", plain)
    return not re.search(r"[^()^$|?*]", needed) or bool(re.search(r"\)[?*{]", plain))


def has_letters(pattern: str) -> bool:
    """Whether it depends on what a letter is."""
    return bool(_WITH_LETTERS.search(pattern))


def groups(pattern: str) -> int | None:
    """The number of groups that capture; None if one may be left out of a match.

    >>> groups(r"(a)([(])(?:b)"), groups("(a)?")
    (2, None)
    """
    plain = _ATOMS.sub("x", pattern)
    if "|" in plain or re.search(r"\)[?*{]", plain):
        return None
    return plain.count("(") - plain.count("(?")


def java_replacement(text: str, *, whole: str, shift: int = 0) -> str | None:
    """A replacement text in Java's syntax.

    Args:
        text: The replacement, with groups as ``\\1``.
        whole: The character that stands for the whole match after a backslash.
        shift: The number of groups put before the pattern's; the last of them is the whole match.

    >>> java_replacement(r"<\\1$>", whole="&")
    '<$1\\\\$>'
    """
    first = shift + 1 if shift else 0
    java = {f"\\{group}": f"${first + group}" for group in range(1, 10)}
    java |= {f"\\{whole}": f"${first}", r"\\": r"\\", "$": r"\$"}
    parts: list[str] = re.findall(r"\\.?|.", text, re.DOTALL)
    if any(part.startswith("\\") and part not in java for part in parts):
        return None
    return "".join(java.get(part, part) for part in parts)


def java_format(format_: str) -> str | None:
    """A format of strftime in Spark's syntax, if it has only numbers of fixed width.

    >>> java_format("%Y-%m-%d"), java_format("%b %d")
    ('yyyy-MM-dd', None)
    """
    parts: list[str] = re.findall(r"%.|[^%]", format_)
    if not all(part in _FORMATS or part in "-/:., " for part in parts):
        return None
    return "".join(_FORMATS.get(part, part) for part in parts)
