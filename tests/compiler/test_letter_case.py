"""A query whose keywords are in lower case is the same query.

sqlglot keeps some words as they are written, so that a comparison with them in upper case fails.
"""

from __future__ import annotations

import pytest
from sqlglot.tokenizer_core import TokenType

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES, plan_of
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.text.query_text import tokens_of
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

pytestmark = pytest.mark.thorough

_KEPT = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING}


def in_lower_case(query: str) -> str:
    """The query with all its keywords, and words that may be some, in lower case."""
    written = list(query)
    for token in tokens_of(query, DIALECT):
        if token.token_type not in _KEPT:
            place = slice(token.start, token.end + 1)
            written[place] = query[place].lower()
    return "".join(written)


cases = [case for case in casefile.load() if not case.error]


@pytest.mark.parametrize("case", cases, ids=str)
def test_keywords_in_lower_case_mean_the_same(case: Case) -> None:
    lower = compile_query(in_lower_case(case.query), TABLES).with_intermediates

    expected = plan_of(case.query).with_intermediates.change_sql()
    assert lower.change_sql().lower() == expected.lower()
