"""Patterns and formats of other dialects, as Java takes them."""

from __future__ import annotations

import pytest

from dagster_streamtables.compiler.dialect.rules.patterns import (
    groups,
    has_letters,
    java_format,
    java_pattern,
    java_replacement,
    matches_nothing,
    one_way,
)


@pytest.mark.parametrize(
    ("pattern", "posix", "java"),
    [
        ("abc", True, "abc"),
        ("^a.c$", True, r"(?s)^a.c\z"),
        ("^a.c$", False, r"(?d)^a.c\z"),
        (r"\d{2,3}-\s", True, r"[0-9]{2,3}-[\t\n\x0B\f\r ]"),
        (r"\w", True, None),
        (r"\w+", False, "[A-Za-z0-9_]+"),
        ("[^a-z]", True, "[^a-z]"),
        ("[[:alpha:]]", True, None),
        ("[[:digit:]x]", True, "[0-9x]"),
        ("[[:punct:]]", True, None),
        ("a(?=b)", True, "a(?=b)"),
        ("(?<=a)b", True, None),
        ("a++", True, None),
        ("*a", True, None),
        ("(?i)a", True, None),
        (r"\yword", True, None),
        ("a{", True, None),
    ],
)
def test_a_pattern_is_javas_or_none(pattern: str, posix: bool, java: str | None) -> None:
    assert java_pattern(pattern, posix=posix) == java


def test_letters_are_those_of_unicode_where_they_are_known() -> None:
    known = {
        r"\w": r"[\p{IsAlphabetic}0-9_]", r"\W": r"[^\p{IsAlphabetic}0-9_]",
        "[^[:upper:]-]": r"[^\p{IsUppercase}-]", r"\Aa\Z": r"\Aa\z",
    }  # fmt: skip
    assert {each: java_pattern(each, posix=True, letters=True) for each in known} == known
    assert [has_letters(each) for each in (r"\y", "[[:lower:]]", r"\d[[:digit:]]")] == [
        True,
        True,
        False,
    ]
    assert java_pattern(r"\y*", posix=True, letters=True) is None


def test_groups_that_capture() -> None:
    assert [groups(each) for each in ("a", "(a)(?:b)", "[(](a)", "(a)?", "(a|b)", "(a)(?=b)")] == [
        0, 1, 1, None, None, 1,
    ]  # fmt: skip
    assert matches_nothing("[[:alpha:]]*")
    assert not matches_nothing("[[:alpha:]]+")


def test_patterns_with_one_longest_match() -> None:
    assert [one_way(each) for each in ("a+", "[a|b]*", "a|b", "a?b?")] == [True, True, False, False]
    assert java_replacement("$1", whole="&") == r"\$1"
    assert java_replacement(r"\x", whole="&") is None
    assert java_format("%d.%m.%Y, %H:%M") == "dd.MM.yyyy, HH:mm"
    assert java_format("%j") is None
