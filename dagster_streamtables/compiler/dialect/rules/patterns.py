"""Translate regular expressions, SIMILAR TO, and date formats of other dialects to Java's.

Only patterns that match the same in every string are translated; the result is None for others.
"""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"[*+?]|\{\d+(,\d*)?\}")
_CLASSES = {"d": "0-9", "s": r"\t\n\f\r ", "w": "A-Za-z0-9_"}
_POSIX_CLASSES = {"d": "0-9", "s": r"\t\n\x0B\f\r "}  # the database defines what a letter is
_FORMATS: dict[str, str] = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
}


def java_pattern(pattern: str, *, posix: bool) -> str | None:
    """A Java regular expression that matches in the same strings.

    Args:
        pattern: In the syntax of Postgres (`posix`) or RE2.
        posix: A dot also matches a line break, and the longest of several matches wins.

    >>> java_pattern("^a.+$", posix=True), java_pattern("[[:alpha:]]", posix=True)
    ('(?s)^a.+\\\\z', None)
    """
    reader = _PatternReader(pattern, _POSIX_CLASSES if posix else _CLASSES)
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
    plain = re.sub(r"\\.|\[[^\]]*\]", "x", pattern)
    return "|" not in plain and len(_QUANTIFIER.findall(plain)) <= 1


def matches_nothing(pattern: str) -> bool:
    r"""Whether the empty string may be a match.

    >>> matches_nothing(r"\s*"), matches_nothing(r"a\s*"), matches_nothing("[,;]+")
    (True, False, False)
    """
    plain = re.sub(r"\\.|\[[^\]]*\]", "x", pattern)
    needed = re.sub(r"[^()^$|](\*|\?|\{0(,\d*)?\})", "", plain)
    return not re.search(r"[^()^$|?*]", needed) or bool(re.search(r"\)[?*{]", plain))


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


class _PatternReader:
    """Reads a pattern once, and stops at anything it does not know."""

    def __init__(self, pattern: str, classes: dict[str, str]) -> None:
        self.left = pattern
        self.classes = classes
        self.out: list[str] = []
        self.dots = False

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
                quantified = self.out[-1] in ("^", "|", "(", "(?:", r"\z")
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
        if self.left.startswith("(?:"):
            self._take("(?:")
        elif self.left.startswith("(?"):
            return False
        else:
            self.dots |= first == "."
            self._take(first, r"\z" if first == "$" else first)
        return True

    def _escape(self) -> bool:
        second = self.left[1:2]
        if second.lower() in self.classes and second:
            negated = "^" if second.isupper() else ""
            self._take(self.left[:2], f"[{negated}{self.classes[second.lower()]}]")
            return True
        if not second or (second.isalnum() and second not in "ntr"):
            return False
        self._take(self.left[:2])
        return True

    def _class(self) -> bool:
        found = re.match(r"\[(\^?)((?:\\[dstnrw\\\]\-.^$/]|[^\\\[\]&])+)\]", self.left)
        if found is None:
            return False
        inside = found[2]
        for escape in re.findall(r"\\([dsw])", inside):
            if escape not in self.classes:
                return False
            inside = inside.replace(f"\\{escape}", self.classes[escape])
        self._take(found[0], f"[{found[1]}{inside}]")
        return True

    def _take(self, text: str, written: str | None = None) -> None:
        self.left = self.left[len(text) :]
        self.out.append(text if written is None else written)
