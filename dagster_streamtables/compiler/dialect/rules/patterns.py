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
_BRACKETS = re.compile(rf"\[(\^?)((?:{_ITEM})+)\]")
_ATOMS = re.compile(rf"\\.|{_BRACKETS.pattern}", re.DOTALL)
_WITH_LETTERS = re.compile(r"\\[wWmMyY]|\[:(alpha|alnum|upper|lower):\]")
_FORMATS: dict[str, str] = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
}


def java_pattern(pattern: str, *, posix: bool, letters: bool = False) -> str | None:
    """A Java regular expression that matches in the same strings.

    Args:
        pattern: In the syntax of Postgres (`posix`) or RE2.
        posix: A dot also matches a line break, and the longest of several matches wins.
        letters: Whether the letters of a `posix` pattern are those of Unicode.

    >>> java_pattern("^a.+$", posix=True), java_pattern("[[:alpha:]]", posix=True)
    ('(?s)^a.+\\\\z', None)
    """
    reader = _PatternReader(pattern, _POSIX_CLASSES if posix else _CLASSES, _NAMED if posix else {})
    if posix and letters:
        reader.know_letters()
    if not reader.read():
        return None
    # Without a flag, Java's dot stops at five kinds of line breaks.
    return ("(?s)" if posix else "(?d)") * reader.dots + "".join(reader.out)


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
    r"""Whether the empty string may be a match.

    >>> matches_nothing(r"\s*"), matches_nothing(r"a\s*"), matches_nothing("[,;]+")
    (True, False, False)
    """
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
        shift: How many groups are put before those of the pattern; if any, the last one of them
            is the whole match.

    >>> java_replacement(r"<\\1$>", whole="&")
    '<$1\\\\$>'
    """
    out: list[str] = []
    characters = iter(text)
    for each in characters:
        if each == "\\":
            following = next(characters, "")
            if following == whole:
                out.append(f"${shift + 1}" if shift else "$0")
            elif following.isdigit() and following != "0":
                out.append(f"${int(following) + (shift + 1 if shift else 0)}")
            elif following == "\\":
                out.append(r"\\")
            else:
                return None
        else:
            out.append(r"\$" if each == "$" else each)
    return "".join(out)


def java_format(format_: str) -> str | None:
    """A format of strftime in Spark's syntax, if it has only numbers of fixed width.

    >>> java_format("%Y-%m-%d"), java_format("%b %d")
    ('yyyy-MM-dd', None)
    """
    parts: list[str] = re.findall(r"%.|[^%]", format_)
    if not all(part in _FORMATS or part in "-/:., " for part in parts):
        return None
    return "".join(_FORMATS.get(part, part) for part in parts)


_GROUPS = ("(?:", "(?=", "(?!")
_OPENING = ("^", "|", "(", *_GROUPS, r"\z")


class _PatternReader:
    """Reads a pattern once, and stops at anything it does not know."""

    def __init__(self, pattern: str, classes: dict[str, str], named: dict[str, str]) -> None:
        self.left = pattern
        self.classes, self.named = classes, named
        self.bounds: dict[str, str] = {}
        self.out: list[str] = []
        self.dots = False

    def know_letters(self) -> None:
        self.classes = {**self.classes, "w": _WORD}
        self.named = {**self.named, **_LETTERS}
        self.bounds = {**_BOUNDS, "A": r"\A", "Z": r"\z"}

    def read(self) -> bool:
        quantified = True  # nothing to quantify yet
        while self.left:
            found = _QUANTIFIER.match(self.left)
            if found:
                if quantified:
                    return False
                self._take(found[0])
                quantified = True
            elif self._element():
                quantified = self.out[-1] in (*_OPENING, *self.bounds.values())
            else:
                return False
        return True

    def _element(self) -> bool:
        first = self.left[0]
        if first == "\\":
            return self._escape()
        if first == "[":
            return self._class()
        if first in "{}]":
            return False
        group = next((each for each in _GROUPS if self.left.startswith(each)), None)
        if group is not None:
            self._take(group)
        elif self.left.startswith("(?"):
            return False
        else:
            self.dots |= first == "."
            self._take(first, r"\z" if first == "$" else first)
        return True

    def _escape(self) -> bool:
        second = self.left[1:2]
        if second in self.bounds and second:
            self._take(self.left[:2], self.bounds[second])
            return True
        if second.lower() in self.classes and second:
            negated = "^" if second.isupper() else ""
            self._take(self.left[:2], f"[{negated}{self.classes[second.lower()]}]")
            return True
        if not second or (second.isalnum() and second not in "ntr"):
            return False
        self._take(self.left[:2])
        return True

    def _class(self) -> bool:
        found = _BRACKETS.match(self.left)
        if found is None:
            return False
        inside = found[2]
        for named in re.findall(r"\[:([a-z]+):\]", inside):
            if named not in self.named:
                return False
            inside = inside.replace(f"[:{named}:]", self.named[named])
        for escape in re.findall(r"\\([dsw])", inside):
            if escape not in self.classes:
                return False
            inside = inside.replace(f"\\{escape}", self.classes[escape])
        self._take(found[0], f"[{found[1]}{inside}]")
        return True

    def _take(self, text: str, written: str | None = None) -> None:
        self.left = self.left[len(text) :]
        self.out.append(text if written is None else written)
