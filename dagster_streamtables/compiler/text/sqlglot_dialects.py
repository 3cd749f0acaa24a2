"""sqlglot's Spark and Postgres dialects, changed so that function calls keep their words.

sqlglot parses a known call into a class of its own, and may print that with another meaning:
``percentile_cont`` comes out as ``percentile_approx``, ``parse_json(x)`` as ``x``. `StreamTables`
parses only the functions of `spark_functions.SCALAR`, and those that rules look at, into classes;
the others stay anonymous calls. Nor does it rearrange a SELECT when printing: sqlglot would lift
each WITH out of its subquery.

The class may also have lost what a translation needs: ``Month`` and ``TMMonth`` in a format of
``to_char`` become one, and ``date_bin`` takes its origin for a unit. So the functions in
`_ANONYMOUS_CALLS` stay anonymous calls in `StreamTablesPostgres`, with their arguments as written.

`type_from` and `type_text` convert types between Spark's spelling and sqlglot's. A code location
converts the types of thousands of columns, of which few are distinct: each is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.pipes import PipeParser
from dagster_streamtables.compiler.text.strict_parser import Builders
from dagster_streamtables.compiler.text.token_edits import closing, outermost
from dagster_streamtables.errors import EnvironmentProblem

_AS_WRITTEN = {
    name.upper()
    for name in spark_functions.AGGREGATES
    | spark_functions.AS_WRITTEN
    | spark_functions.LAMBDAS
    | spark_functions.OTHERS
    | spark_functions.TABLE_VALUED - {"explode", "posexplode", "explode_outer", "posexplode_outer"}
    | spark_functions.WINDOW
    | spark_functions.TIME_WINDOWS
}


def require_pure_python(file: str) -> None:
    """Require a module of sqlglot that sqlglotc did not compile: a compiled class cannot be the
    base of the dialect below, and the first query would raise a TypeError."""
    if not file.endswith(".py"):
        raise EnvironmentProblem(
            "sqlglot is installed with its compiled modules",
            where=file,
            why="its compiled parser cannot be extended (the package sqlglotc, or sqlglot[c])",
            fix="pip uninstall sqlglotc, then pip install --force-reinstall --no-deps sqlglot",
        )


require_pure_python(parser.__file__)


def _path_of(part: exp.JSONPathPart) -> str:
    """A part of a path as `variant_get` spells it."""
    if isinstance(part, exp.JSONPathRoot):
        return "$"
    if isinstance(part, exp.JSONPathSubscript):
        return f"[{part.this}]" if isinstance(part.this, int) else "[*]"
    return f"['{part.name}']" if part.args.get("quoted") else f".{part.name}"


def _logical_right_shift(this: exp.Expr | None, expression: exp.Expr | None) -> exp.Expr:
    return exp.Anonymous(this="shiftrightunsigned", expressions=[this, expression])


_LEVELS: Sequence[Mapping[TokenType, Any]] = (
    {TokenType.AMP: exp.BitwiseAnd},
    {TokenType.CARET: exp.BitwiseXor},
    {TokenType.PIPE: exp.BitwiseOr},
)
"""The bitwise operators, the tightest first."""


_SELECT_ALL = (TokenType.SELECT, TokenType.ALL)
_AFTER_COLUMN = {TokenType.COMMA, TokenType.FROM, TokenType.ALIAS, TokenType.R_PAREN}


IN_LOWER_CASE = "st_in_lower_case"
"""Mark of a frame whose words are in lower case."""


class StreamTables(Spark):
    class Parser(PipeParser):
        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            # sqlglot ends a GROUP BY at the word `window`, which may begin a call.
            for token, following in pairwise(raw_tokens):
                is_window = token.token_type is TokenType.WINDOW
                if is_window and following.token_type is TokenType.L_PAREN:
                    token.token_type = TokenType.VAR
            # And it skips the column in SELECT all, x.
            for before, token, following in zip(
                raw_tokens, raw_tokens[1:], raw_tokens[2:], strict=False
            ):
                selected = (before.token_type, token.token_type) == _SELECT_ALL
                if selected and following.token_type in _AFTER_COLUMN:
                    token.token_type = TokenType.VAR
            return super().parse(raw_tokens, sql)

        def _replace_lambda(self, node: exp.Expr | None, expressions: list[exp.Expr]) -> Any:
            # Spark finds the parameters of a lambda in any letter case, sqlglot in theirs.
            named = {each.name.lower(): each.name for each in expressions}
            for column in node.find_all(exp.Column) if node else ():
                name = column.parts[0].name.lower()
                if name in named:
                    key = next(k for k in ("catalog", "db", "table", "this") if column.args.get(k))
                    column.set(key, exp.to_identifier(named[name]))
            return super()._replace_lambda(node, expressions)

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
            window = super()._parse_window(this, alias)
            frame = window.args.get("spec") if isinstance(window, exp.Window) else None
            if frame is None:
                return window
            # sqlglot keeps these words in the letter case of the text.
            for word in ("kind", "start_side", "end_side"):
                said = frame.args.get(word)
                if isinstance(said, str) and not said.isupper():
                    frame.set(word, said.upper())
                    frame.meta[IN_LOWER_CASE] = True
            return window

        # After GROUP BY ALL, sqlglot takes UNION (SELECT …) for the call of a function.
        FUNC_TOKENS: ClassVar[set[TokenType]] = Spark.Parser.FUNC_TOKENS - {TokenType.UNION}

        # To sqlglot, || and << bind like &, | and ^. To Spark, || binds like +, and << before &,
        # & before ^, and ^ before |.
        TERM: ClassVar[Builders] = {**Spark.Parser.TERM, TokenType.DPIPE: exp.DPipe}

        def _parse_table(self, *args: Any, joins: bool = False, **options: Any) -> exp.Expr | None:
            table = super()._parse_table(*args, joins=joins, **options)
            if isinstance(table, exp.Table) and self._prev.token_type is TokenType.STAR:
                self._refuse("no * follows the name of a table", self._prev, "remove the *")
            # In a query that begins with FROM, sqlglot looks for joins only after other relations.
            if joins and isinstance(table, exp.Values | exp.Lateral | exp.Unnest):
                for join in self._parse_joins():
                    table.append("joins", join)
            return table

        def _parse_derived_table_values(self, *args: Any, **options: Any) -> exp.Values | None:
            # sqlglot takes (VALUES for rows in parentheses, which may also have joins in them.
            return (
                None
                if self._joins_values()
                else super()._parse_derived_table_values(*args, **options)
            )

        def _joins_values(self) -> bool:
            """Whether parentheses begin with VALUES, and have a join."""
            if not self._match_pair(TokenType.L_PAREN, TokenType.VALUES, advance=False):
                return False
            inside = self._tokens[self._index + 1 : closing(self._tokens, self._index)]
            return bool(outermost(inside, TokenType.JOIN))

        def _parse_bitwise(self) -> exp.Expr | None:
            return self._left_to_right(_LEVELS)

        def _left_to_right(self, levels: Sequence[Mapping[TokenType, Any]]) -> exp.Expr | None:
            """Operators of the last level, over those that bind before them."""
            if not levels:
                return self._parse_shift()
            [*tighter, level] = levels
            this = self._left_to_right(tighter)
            while self._match_set(level):
                made = level[self._prev.token_type]
                this = self.expression(made(this=this, expression=self._left_to_right(tighter)))
            return this

        def _parse_shift(self) -> exp.Expr | None:
            this = self._parse_term()
            while self._next and self._curr.end + 1 == self._next.start:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    made: Any = exp.BitwiseLeftShift
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    made = (
                        _logical_right_shift if self._match(TokenType.GT) else exp.BitwiseRightShift
                    )
                else:
                    break
                this = self.expression(made(this=this, expression=self._parse_term()))
            return this

        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

        def _build_json_extract(
            self, this: exp.Expr | None, path_parts: list[exp.JSONPathPart]
        ) -> tuple[exp.Expr | None, list[exp.JSONPathPart]]:
            """``v:a.b[0]`` as the call that it is: Spark alone reads the path."""
            if len(path_parts) < 2:
                return this, path_parts
            path = exp.Literal.string("".join(map(_path_of, path_parts)))
            arguments = [this, path, exp.Literal.string("variant")]
            found = exp.Anonymous(this="variant_get", expressions=arguments)
            return found, [exp.JSONPathRoot()]

        FUNCTIONS: ClassVar[Builders] = {
            name: build for name, build in Spark.Parser.FUNCTIONS.items() if name not in _AS_WRITTEN
        }
        FUNCTION_PARSERS: ClassVar[Builders] = {
            name: parse
            for name, parse in Spark.Parser.FUNCTION_PARSERS.items()
            if name not in _AS_WRITTEN
        }

    class Tokenizer(Spark.Tokenizer):
        # 'it''s' is it's since Spark 4.0. To sqlglot it is two texts, as in Hive: its.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        # A hint such as /*+ REPARTITION(3) */ says nothing about rows: it is a comment.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{
                word: kind
                for word, kind in Spark.Tokenizer.KEYWORDS.items()
                if word != "/*+" and not word.strip("!*").startswith("~~")
            },
            "!<": TokenType.GTE,
            "!>": TokenType.LTE,
        }

    class Generator(Spark.Generator):
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TRANSFORMS: ClassVar[Builders] = {
            node: write
            for node, write in Spark.Generator.TRANSFORMS.items()
            if node not in (exp.Select, exp.WithinGroup)
        }


DIALECT = "streamtables"
"""The dialect's name in sqlglot."""


def quote(name: str) -> str:
    """The name in backticks."""
    return exp.to_identifier(name, quoted=True).sql(DIALECT)


def named_struct(fields: Mapping[str, exp.Expr]) -> exp.Expr:
    """A call of named_struct over copies of values."""
    named = ((exp.Literal.string(name), value.copy()) for name, value in fields.items())
    return exp.Anonymous(this="named_struct", expressions=[*chain(*named)])


UNKNOWN = "UNKNOWN"
"""The text of a type that is not known."""
_MOST = 4096


def type_from(text: str) -> exp.DataType:
    """A new type for a text such as ``decimal(10,2)``; UNKNOWN if the text is not a type."""
    return _parse_type_text(text).copy()


def type_text(type_: exp.DataType) -> str:
    """The type in Spark's spelling, such as ``ARRAY<INT>``."""
    plain = not any(value for name, value in type_.args.items() if name != "this")
    if plain and isinstance(type_.this, exp.DType):
        return _spell_kind(type_.this)
    return type_.sql(DIALECT)


@lru_cache(_MOST)
def _parse_type_text(text: str) -> exp.DataType:
    try:
        return exp.DataType.build(text, dialect=DIALECT)
    except SqlglotError:
        return exp.DataType.build(UNKNOWN)


@lru_cache(_MOST)
def _spell_kind(kind: exp.DType) -> str:
    return exp.DataType(this=kind).sql(DIALECT)


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
