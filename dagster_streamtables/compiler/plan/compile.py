"""Query text and the columns of its sources → `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.analyze.bind import BoundQuery, Columns, parse
from dagster_streamtables.compiler.analyze.make_deterministic import (
    make_deterministic,
    remaining_ties,
)
from dagster_streamtables.compiler.analyze.refuse import refuse
from dagster_streamtables.compiler.analyze.storable_types import drop_interval_types
from dagster_streamtables.compiler.lower.lowering import lower
from dagster_streamtables.compiler.maintain.strategy import strategy_of
from dagster_streamtables.compiler.plan.plan import QueryPlan
from dagster_streamtables.compiler.scope.ambiguous_words import (
    require_one_meaning,
    texts_like_columns,
)
from dagster_streamtables.compiler.text.current_time import WORDS, with_clock
from dagster_streamtables.compiler.text.pipes import number_of
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.quantifiers import without_quantifiers
from dagster_streamtables.compiler.text.query_text import (
    Text,
    tokenize_query,
    without_parentheses,
    without_repetitions,
)
from dagster_streamtables.errors import InvalidDefinition


def compile_query(query: str | Text, sources: Mapping[str, Columns]) -> QueryPlan:
    """Compile one SELECT against the columns of its sources.

    Args:
        query: The text, in Spark SQL.
        sources: Table name in the query → its columns and their types in Spark's spelling.

    Raises:
        InvalidDefinition: The text is not one query, or names a column that does not exist.
        UnsupportedQuery: The query contains something that cannot be maintained.

    >>> orders = {"orders": {"id": "bigint", "customer": "bigint", "amount": "bigint"}}
    >>> query = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
    >>> plan = compile_query(query, orders)
    >>> plan.key, plan.internal_columns
    (('customer',), ('__st_n', '__st_c1'))
    """
    written = query if isinstance(query, Text) else tokenize_query(query)
    text = written
    require_one_meaning(text, sources)
    quoted = texts_like_columns(text, sources)
    try:
        text, parsed = _parse_deterministic(text, sources)
        ties = remaining_ties(text, parsed.tree)
        drop_interval_types(parsed.tree)
        view = lower(parsed, sources)
    except Refusal as refusal:
        raise refusal.in_text(text) from None
    except (SqlglotError, RecursionError) as error:
        raise InvalidDefinition(
            "the query cannot be analyzed",
            where=text.locate(),
            why=str(error),
            fix="simplify the query, or choose mode FULL",
        ) from error
    has_numbers = any(number_of(each) is not None for each in written.tree.find_all(exp.Column))
    columns = tuple(f"{name}.{column}" for name in sources for column in sources[name])
    counted = columns if has_numbers else ()
    return QueryPlan(view, strategy_of(view), text=text, counted=counted, ties=ties, quoted=quoted)


def require_maintainable(text: Text) -> None:
    """Refuse a query by its text alone, without the columns of its sources.

    Raises:
        UnsupportedQuery: It contains something that cannot be maintained.
        InvalidDefinition: Spark lacks the syntax.
    """
    refuse(_plain(text))


def with_one_answer(text: Text, sources: Mapping[str, Columns]) -> Text:
    """The text that a full refresh runs: with a unique result if possible, and with one name for
    the time.

    Raises:
        InvalidDefinition: A word may be a function of the time, or a column.
    """
    require_one_meaning(text, sources)
    try:
        return _parse_deterministic(text, sources)[0]
    except (InvalidDefinition, Refusal, SqlglotError, RecursionError):
        return with_clock(text)


def _parse_deterministic(text: Text, sources: Mapping[str, Columns]) -> tuple[Text, BoundQuery]:
    text = _plain(text)
    parsed = parse(text, sources)
    decided = make_deterministic(text, parsed.tree)
    return (text, parsed) if decided is text else (decided, parse(decided, sources))


def _plain(text: Text) -> Text:
    """The text in forms that Spark's SQL and all rules have."""
    for rewrite, words in _REWRITES:
        if words & text.vocabulary:
            text = rewrite(text)
    return text


_REWRITES: tuple[tuple[Callable[[Text], Text], frozenset[str]], ...] = (
    (without_parentheses, frozenset("(")),
    (without_repetitions, frozenset(("with",))),
    (without_quantifiers, frozenset(("all", "any", "some"))),
    (with_clock, WORDS),
)
"""Rewrites, each with words without which a text stays as it is."""
