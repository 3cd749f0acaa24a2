"""sqlglot's Spark dialect, changed so that function calls print as they were written.

sqlglot parses a known call into a class of its own, and may print that with another meaning:
``percentile_cont`` comes out as ``percentile_approx``, ``parse_json(x)`` as ``x``. Here it knows
only the functions of `spark_functions.SCALAR` and those that rules look at; the others stay
anonymous calls. Nor does it rearrange a SELECT when printing: it would lift each WITH out of its
subquery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.pipes import PipeParser
from dagster_streamtables.compiler.text.strict_parser import Builders
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
    """
    Args:
        file: Of a module of sqlglot that `sqlglotc` compiles. A compiled class cannot be the base
            of the dialect below: sqlglot would raise a TypeError at the first query.

    Raises:
        EnvironmentProblem: It is compiled.
    """
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
            # sqlglot takes (VALUES for rows in parentheses, which may have joins in them, too.
            return (
                None
                if self._joins_values()
                else super()._parse_derived_table_values(*args, **options)
            )

        def _joins_values(self) -> bool:
            """Whether parentheses begin with VALUES, and have a join."""
            if not self._match_pair(TokenType.L_PAREN, TokenType.VALUES, advance=False):
                return False
            depth = 0
            for token in self._tokens[self._index :]:
                kind = token.token_type
                depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
                if depth == 0 or (depth == 1 and kind is TokenType.JOIN):
                    return depth == 1
            return False

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
