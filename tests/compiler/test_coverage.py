"""The page of constructs shows every feature, and names cases and tests that exist."""

from __future__ import annotations

import re

import pytest

from compiler import casefile
from tests import coverage


def test_every_case_says_what_it_covers() -> None:
    for case in casefile.load():
        assert case.constructs, f"{case} has no line `--- covers:`"
        assert all(construct for _, construct in case.constructs), str(case)
        unknown = {feature for feature, _ in case.constructs} - set(coverage.FEATURES)
        assert not unknown, f"{case}: {unknown}"


def test_every_feature_of_queries_is_shown() -> None:
    shown = {feature for case in casefile.load() for feature, _ in case.constructs}
    missing = {f"Q{number}" for number in range(1, 30)} - shown - set(coverage.ELSEWHERE)
    assert not missing


def test_the_tests_that_are_named_exist() -> None:
    for tests in coverage.ELSEWHERE.values():
        for file, test in tests:
            text = (coverage.ROOT / file).read_text()
            assert re.search(rf"^def {test}\(", text, flags=re.M), f"{file}: {test}"


@pytest.mark.thorough
def test_the_page_has_every_construct() -> None:
    page = coverage.page()
    lacking = {c for case in casefile.load() if not case.error for _, c in case.constructs}
    assert not {c for c in lacking if c.replace("|", "\\|") not in page}
