"""Words that Spark may read otherwise than their author: ``current_date`` and ``"id"``.

``current_date`` is a function, unless a column in reach has that name. sqlglot always reads the
function. Two more characters remove the doubt, so an ambiguous query is refused in every mode: a
full refresh replaces the word too.

``SELECT "id" FROM orders`` returns a constant: Spark reads a text where PostgreSQL, DuckDB and the
standard read a name. A note reports it only in a place where a constant is of little use, and if
the table has a column of that name:

    an output                  unless the outputs of the SELECT also read the column: a label, as in
                               ``SELECT "amount" AS measure, amount AS value``
    a key of GROUP BY, ORDER BY or PARTITION BY
    the argument of an aggregate

In other places, queries compare texts with columns, search them in lists, or pass them to
functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.table_mentions import table_name
from dagster_streamtables.errors import InvalidDefinition

_NEITHER = (TokenType.DOT, TokenType.ALIAS)
"""Before such words that are names."""


def require_one_meaning(text: Text, sources: Mapping[str, Mapping[str, str]]) -> None:
    """
    Raises:
        InvalidDefinition: A word may be a function, or a column of that name.
    """
    words = Spark.Parser.NO_PAREN_FUNCTIONS
    if not any(each.token_type in words for each in text.tokens):
        return
    names = {column.lower() for columns in sources.values() for column in columns}
    names |= {each.name.lower() for each in text.tree.find_all(exp.Identifier)}
    around = zip([None, *text.tokens], text.tokens, [*text.tokens[1:], None], strict=False)
    for before, token, after in around:
        if token.token_type not in words or token.text.lower() not in names:
            continue
        named = before is not None and before.token_type in _NEITHER
        called = after is not None and after.token_type is TokenType.L_PAREN
        if not (named or called):
            raise InvalidDefinition(
                f"{token.text} is the name of a column, and of a function",
                where=text.locate(token.start, token.end),
                why="Spark takes the column where it is in reach, and the function elsewhere",
                fix=f"write `{token.text}` in backticks for the column, or {token.text}() for the "
                "function",
            )


def texts_like_columns(text: Text, sources: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """A note for each text in double quotes that is written where a column of its name is meant."""
    quoted = _texts(text, '"') - _texts(text, "'")
    scopes = Scopes(lambda table: list(sources.get(table_name(table), ())) or None)
    literals = text.tree.find_all(exp.Literal) if quoted else ()
    names = {
        each.name: None
        for each in literals
        if each.is_string and each.name in quoted and _is_like_column(each, scopes)
    }
    return tuple(
        f"\"{name}\" is the text '{name}' in Spark's dialect, not the column: write `{name}` for "
        f"the column, or '{name}' for the text"
        for name in names
    )


def _texts(text: Text, quote: str) -> set[str]:
    """The texts in one kind of quotes."""
    found = (each for each in text.tokens if each.token_type is TokenType.STRING)
    return {each.text for each in found if text.sql[each.start] == quote}


def _is_like_column(literal: exp.Literal, scopes: Scopes) -> bool:
    name, select = literal.name.lower(), literal.find_ancestor(exp.Select)
    if select is None or not _is_useless_constant(literal, select):
        return False
    try:
        return bool(scopes.columns(select).find(name))
    except Refusal:
        return False


def _is_useless_constant(literal: exp.Literal, select: exp.Select) -> bool:
    """Whether it stands where a constant is of little use."""
    node: exp.Expr = literal
    while isinstance(node.parent, exp.Paren | exp.Alias):
        node = node.parent
    if node.parent is select and node.arg_key == "expressions":
        read = (each for output in select.selects for each in output.find_all(exp.Column))
        return literal.name.lower() not in {each.name.lower() for each in read}
    if isinstance(node.parent, exp.Window):
        return node.arg_key == "partition_by"
    is_argument = isinstance(node.parent, exp.AggFunc) and node.arg_key == "this"
    return is_argument or isinstance(node.parent, exp.Group | exp.Ordered | exp.Distinct)
