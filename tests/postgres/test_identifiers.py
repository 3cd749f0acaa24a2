"""The words that PostgreSQL quotes as names."""

from __future__ import annotations

from typing import Any

from dagster_streamtables.compiler.dialect.postgres.identifiers import KEYWORDS


def test_the_keywords_are_those_of_postgres(postgres: Any) -> None:
    query = "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"
    assert sorted(KEYWORDS.split()) == sorted(word for (word,) in postgres.execute(query))
