"""One query in some dialect → its tokens and its syntax tree, or an error."""

from __future__ import annotations

import re
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.spark_functions import require_arguments
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, parser_of
from dagster_streamtables.compiler.text.strict_parser import SparkRefusesError
from dagster_streamtables.compiler.text.table_mentions import BEGINNINGS
from dagster_streamtables.errors import InvalidDefinition, underline

IN_POSTGRES = (
    "for a query of PostgreSQL, set dialect to postgres (in a .sql file, by the line "
    "-- dialect: postgres)"
)
_REFERENCE = re.compile(r"\{\{\s*(?:ref|source)\s*\(([^)]*)\)")


def tokens_of(sql: str, dialect: str) -> list[Token]:
    """
    Raises:
        InvalidDefinition: A quote or a comment is not closed.
    """
    return _without_comments(sql, dialect)[1]


def _without_comments(sql: str, dialect: str) -> tuple[str, list[Token]]:
    """The text with blanks for the comments between its tokens, which all stay in their places:
    sqlglot reads ORDER BY only with nothing but white space inside it."""
    try:
        tokens = sqlglot.tokenize(sql, dialect=parser_of(dialect))
    except TokenError as error:
        raise _token_error(sql, error) from None
    bare = sql
    for before, after in pairwise(tokens):
        gap = sql[before.end + 1 : after.start]
        if gap and not gap.isspace():
            bare = bare[: before.end + 1] + re.sub(r"\S", " ", gap) + bare[after.start :]
    return bare, tokens if bare == sql else sqlglot.tokenize(bare, dialect=parser_of(dialect))


def parse_query(sql: str, dialect: str) -> exp.Query:
    """
    Raises:
        InvalidDefinition: sqlglot cannot parse the text as one query of the dialect.
    """
    bare, tokens = _without_comments(sql, dialect)
    require_query(sql, tokens)
    if dialect == DIALECT:
        require_arguments(sql, tokens)
    try:
        trees = sqlglot.Dialect.get_or_raise(parser_of(dialect)).parser().parse(tokens, bare)
        [tree] = [each for each in trees if each is not None]
    except ParseError as error:
        raise _parse_error(sql, error, dialect) from None
    except Exception as error:
        # sqlglot crashes on some calls with a wrong number of arguments, such as map(1).
        raise InvalidDefinition(
            "the query cannot be parsed",
            where=underline(sql, 0, len(sql)),
            why=f"the parser fails: {error}",
            fix="look for a function with too few arguments" + _or_full(dialect),
        ) from error
    if not isinstance(tree, exp.Query):
        raise _no_query(sql)
    # sqlglot parses `UNION TABLE t` as a column.
    sets = tree.find_all(exp.SetOperation)
    parts = [side for each in sets for side in (each.left, each.right)]
    parts += [each.this for each in tree.find_all(exp.CTE)]
    if not all(isinstance(each, exp.Query) for each in parts):
        raise InvalidDefinition(
            "the query cannot be parsed",
            where=underline(sql, 0, len(sql)),
            why="the parser takes an operand of UNION, or a definition in WITH, for no query",
            fix="write SELECT * FROM in place of TABLE" + _or_full(dialect),
        )
    return tree


def require_query(sql: str, tokens: list[Token]) -> None:
    """
    Raises:
        InvalidDefinition: The text has several statements, or does not begin like a query.
    """
    _require_no_template(sql, tokens)
    _require_one(sql, tokens)
    if not tokens or sql[tokens[0].start : tokens[0].end + 1].upper() not in BEGINNINGS:
        raise _no_query(sql)


def _require_no_template(sql: str, tokens: list[Token]) -> None:
    """dbt's models, say, name tables by ``{{ ref('orders') }}``."""
    for token, following in pairwise(tokens):
        mark = sql[token.start : following.end + 1]
        if not mark.startswith(("{{", "{%", "{#")):
            continue
        end = sql.find({"{{": "}}", "{%": "%}", "{#": "#}"}[mark[:2]], token.start)
        named = _REFERENCE.search(sql)
        table = ".".join(re.findall(r"\w+", named[1])) if named else "raw.orders"
        raise InvalidDefinition(
            "the query is a Jinja template",
            where=underline(sql, token.start, following.end if end < 0 else end + 1),
            why="it is SQL only after it is rendered, which the dependencies are read from",
            fix=f"name each table itself, as in FROM {table}; or take what dbt compile writes into "
            "target/compiled",
        )


def _require_one(sql: str, tokens: list[Token]) -> None:
    ends = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    following = [i + 1 for i in ends if i + 1 < len(tokens) and i + 1 not in ends]
    if following:
        second = tokens[following[0]]
        raise InvalidDefinition(
            f"the text contains {len(following) + 1} statements",
            where=underline(sql, second.start, second.end),
            why="a stream table holds the result of one query",
            fix="write exactly one SELECT",
        )


def _no_query(sql: str) -> InvalidDefinition:
    word = sql.split()[0] if sql.strip() else ""
    begin = sql.find(word)
    constant = word.upper().startswith("VALUES")
    return InvalidDefinition(
        f"{word.upper()} does not begin a query",
        where=underline(sql, begin, begin + len(word) - 1),
        why="rows of constants never change"
        if constant
        else "a stream table holds the result of one query",
        fix="write them into a Delta table, or beside one: FROM t JOIN (VALUES (1)) AS v(a) ON …"
        if constant
        else "write a SELECT; its result is what the table holds",
    )


def _parse_error(sql: str, error: ParseError, dialect: str) -> InvalidDefinition:
    details = error.errors[0] if error.errors else {}
    offset = _offset(sql, details.get("line", 1), details.get("col", 1))
    length = len(details.get("highlight") or " ")
    start = max(0, offset - length)
    fix = "correct the query there, or just before it" + _or_full(dialect)
    if isinstance(error, SparkRefusesError):
        fix = error.fix
    elif dialect == DIALECT and _is_of_postgres(sql):
        fix = f"{IN_POSTGRES}; otherwise {fix}"
    return InvalidDefinition(
        "the query cannot be parsed",
        where=underline(sql, start, start + length - 1),
        why=_reason(str(details.get("description") or error), sql[start : start + length]),
        fix=fix,
    )


def _reason(description: str, text: str) -> str:
    """What sqlglot says, without the names of its classes."""
    if description.startswith("Required keyword"):
        return "an operand or an argument is missing here"
    if description.startswith("Invalid expression"):
        return f"{text} does not fit here"
    if description.startswith("Expecting "):
        return f"{description.removeprefix('Expecting ')} is missing here"
    return description.partition(" but got ")[0].strip().rstrip(".")


def _is_of_postgres(sql: str) -> bool:
    try:
        return isinstance(sqlglot.parse_one(sql, dialect=parser_of("postgres")), exp.Query)
    except Exception:  # sqlglot breaks on some of what it cannot parse
        return False


def _or_full(dialect: str) -> str:
    return "; if Spark runs it as it is, choose mode FULL" if dialect == DIALECT else ""


def _token_error(sql: str, error: TokenError) -> InvalidDefinition:
    """An unclosed quote or comment; the tokenizer names the line where it gave up."""
    found = re.search(r"from (\d+):(\d+)", str(error))
    start = _offset(sql, int(found[1]), int(found[2])) - 1 if found else len(sql) - 1
    return InvalidDefinition(
        "the query cannot be parsed",
        where=underline(sql, max(0, min(start, len(sql) - 1)), len(sql)),
        why="a quote or a comment is not closed",
        fix="close the quote or comment that begins here",
    )


def _offset(sql: str, line: int, col: int) -> int:
    lines = sql.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + col
