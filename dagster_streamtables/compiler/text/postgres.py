"""sqlglot's Postgres dialect, changed so that more calls keep the words of their author.

What sqlglot parses into a class of its own may have lost what a translation needs: ``Month`` and
``TMMonth`` in a format of ``to_char`` become one, and ``date_bin`` takes its origin for a unit. The
functions below stay anonymous calls instead, with their arguments as written.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.text.strict_parser import Builders

_WORDS = """
    ARRAY_AGG ARRAY_PREPEND ARRAY_REVERSE ARRAY_SORT DATE_ADD DATE_BIN DATE_SUBTRACT DECODE ENCODE
    FORMAT INITCAP JSON_AGG JSON_ARRAYAGG JSON_OBJECT_AGG JSONB_OBJECT_AGG JSON_EXTRACT_PATH
    JSON_EXTRACT_PATH_TEXT JSONB_EXISTS JSON_STRIP_NULLS JUSTIFY_DAYS JUSTIFY_HOURS
    JUSTIFY_INTERVAL MAKE_INTERVAL
    MAKE_TIMESTAMP OVERLAPS REGEXP_COUNT REGEXP_INSTR REGEXP_LIKE REGEXP_SUBSTR SHA256 SHA224
    SHA384 SHA512 STRING_TO_ARRAY TO_CHAR TO_DATE TO_HEX TO_NUMBER TO_TIMESTAMP
"""
_ANONYMOUS_CALLS = frozenset(_WORDS.split())
CALLED = "called"
"""What the parser notes in a call: the name of the function."""
AROUND_CALLS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""What may follow a call, and is parsed around it."""


class StreamTablesPostgres(Postgres):
    INDEX_OFFSET = 0
    """Else sqlglot subtracts 1 from an index, where it knows that it is a whole number."""

    class Parser(Postgres.Parser):
        FUNCTIONS: ClassVar[Builders] = {
            name: build
            for name, build in Postgres.Parser.FUNCTIONS.items()
            if name not in _ANONYMOUS_CALLS
        }
        # Nothing in Postgres is a lambda: f(j -> 'a') has an operator.
        LAMBDAS: ClassVar[Builders] = {
            token: parse
            for token, parse in Postgres.Parser.LAMBDAS.items()
            if token is not TokenType.ARROW
        }
        FUNCTION_PARSERS: ClassVar[Builders] = {
            name: parse
            for name, parse in Postgres.Parser.FUNCTION_PARSERS.items()
            if name not in _ANONYMOUS_CALLS
        }

        def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            """A call that notes the word of its author, after which its output is named."""
            word = self._curr.text.lower() if self._curr else ""
            follows = self._next and self._next.token_type is TokenType.L_PAREN
            found = super()._parse_function_call(*arguments, **options)
            called = found if follows and word != "case" else None
            while isinstance(called, AROUND_CALLS):
                called = called.this
            if isinstance(called, exp.Expr):
                called.meta.setdefault(CALLED, word)
            return found

        def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
            if not self._match_text_seq("AT", "LOCAL"):
                return super()._parse_at_time_zone(this)
            local = self.expression(exp.AtTimeZone(this=this, zone=exp.var("LOCAL")))
            return self._parse_at_time_zone(local)

        def _parse_interval(self, *arguments: Any, **options: Any) -> Any:
            """An interval with its text as written: of ``'1 day 02:30'`` only the day is kept."""
            begin = self._index
            found = super()._parse_interval(*arguments, **options)
            texts = [
                token.text
                for token in self._tokens[begin : self._index]
                if token.token_type is TokenType.STRING
            ]
            if isinstance(found, exp.Interval) and texts and re.search("[a-zA-Z:]", texts[0]):
                return exp.Interval(this=exp.Literal.string(texts[0]))
            return found


_PARSED_AS: dict[str, Any] = {"postgres": "streamtablespostgres"}


def parser_of(dialect: str) -> str:
    """The name in sqlglot of the dialect that reads queries of a dialect."""
    return str(_PARSED_AS.get(dialect, dialect))
