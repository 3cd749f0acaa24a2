"""sqlglot's Spark dialect, changed so that function calls print as they were written.

sqlglot parses a known call into a class of its own, and may print that with another meaning:
``percentile_cont`` comes out as ``percentile_approx``, ``parse_json(x)`` as ``x``. Here it knows
only the functions of `spark_functions.SCALAR` and those that rules look at; the others stay
anonymous calls. Nor does it rearrange a SELECT when printing: it would lift each WITH out of its
subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from sqlglot import exp, parser
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
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


def require_interpreted(file: str) -> None:
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


require_interpreted(parser.__file__)

Builders = dict[Any, Callable[..., Any]]


def _path_of(part: exp.JSONPathPart) -> str:
    """A part of a path as `variant_get` spells it."""
    if isinstance(part, exp.JSONPathRoot):
        return "$"
    if isinstance(part, exp.JSONPathSubscript):
        return f"[{part.this}]" if isinstance(part.this, int) else "[*]"
    return f"['{part.name}']" if part.args.get("quoted") else f".{part.name}"


def _unsigned(this: exp.Expr | None, expression: exp.Expr | None) -> exp.Expr:
    return exp.Anonymous(this="shiftrightunsigned", expressions=[this, expression])


_LEVELS: Sequence[Mapping[TokenType, Any]] = (
    {TokenType.AMP: exp.BitwiseAnd},
    {TokenType.CARET: exp.BitwiseXor},
    {TokenType.PIPE: exp.BitwiseOr},
)
"""The bitwise operators, the tightest first."""


_SELECT_ALL = (TokenType.SELECT, TokenType.ALL)
_AFTER_COLUMN = {TokenType.COMMA, TokenType.FROM, TokenType.ALIAS, TokenType.R_PAREN}


# Not the name of a table in any letter case (`strictNonReserved` in Spark's grammar).
_NO_ALIAS = {
    "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "NATURAL",
    "ON", "RIGHT", "SEMI", "SETMINUS", "UNION", "USING",
}  # fmt: skip
_CLAUSES = (
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
)
"""In the order in which a query has them."""
_RANGES = {
    TokenType.BETWEEN, TokenType.ILIKE, TokenType.IN, TokenType.IS, TokenType.LIKE,
    TokenType.RLIKE, TokenType.SIMILAR_TO,
}  # fmt: skip
_LISTS = ("_parse_disjunction", "_parse_expression", "_parse_ordered")
"""The methods of sqlglot that read the items of SELECT, PARTITION BY and ORDER BY."""


_TYPE_WORDS = """
    array bigint binary boolean byte char character date dec decimal double float geography geometry
    int integer interval long map null numeric real short smallint string struct time timestamp
    timestamp_ltz timestamp_ntz tinyint varchar variant void
    bd d f l s y
"""
_TYPES = frozenset(_TYPE_WORDS.split())
"""The types of Spark, and the endings of its numbers, which sqlglot reads as types: 2Y, 0.5D."""
_WITH_LENGTH = {"char", "character", "varchar"}
_TYPES_INSTEAD = {
    "text": "STRING", "varchar": "STRING", "char": "STRING", "character": "STRING",
    "timestamptz": "TIMESTAMP", "datetime": "TIMESTAMP", "json": "STRING", "jsonb": "STRING",
    "uuid": "STRING", "bytea": "BINARY", "blob": "BINARY", "int4": "INT", "int8": "BIGINT",
    "int2": "SMALLINT", "float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN",
    "int64": "BIGINT", "float64": "DOUBLE", "number": "DECIMAL", "bytes": "BINARY",
}  # fmt: skip


class SparkRefusesError(ParseError):
    """Spark's parser refuses the text, too, so that no mode helps."""


class StrictParser(Spark.Parser):
    """Refuses what sqlglot forgives and Spark does not.

    Otherwise the refresh would fail, with a message about SQL that nobody wrote. `python -m
    qa.damage` looks for more.
    """

    # Without the operators of PostgreSQL and others: j ->> 'a', x @> y, a <-> b, |/ x, s ~* 'x'.
    COLUMN_OPERATORS: ClassVar[Builders] = {
        kind: read
        for kind, read in Spark.Parser.COLUMN_OPERATORS.items()
        if kind in (TokenType.DOT, TokenType.DCOLON)
    }
    RANGE_PARSERS: ClassVar[Builders] = {
        kind: read for kind, read in Spark.Parser.RANGE_PARSERS.items() if kind in _RANGES
    }
    FACTOR: ClassVar[Builders] = {
        kind: made
        for kind, made in Spark.Parser.FACTOR.items()
        if kind not in (TokenType.LR_ARROW, TokenType.LLRR_ARROW)
    }
    UNARY_PARSERS: ClassVar[Builders] = {
        kind: read
        for kind, read in Spark.Parser.UNARY_PARSERS.items()
        if kind not in (TokenType.PIPE_SLASH, TokenType.DPIPE_SLASH)
    }

    def _refuse(self, why: str, token: Token) -> NoReturn:
        raise SparkRefusesError.new(
            why, description=why, line=token.line, col=token.col, highlight=token.text
        )

    def _parse_csv(
        self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA
    ) -> list[Any]:
        # sqlglot reads others on trial, as STRUCT(a, b) for a type.
        if getattr(parse_method, "__name__", "") not in _LISTS:
            return super()._parse_csv(parse_method, sep)
        return super()._parse_csv(self._item(parse_method, sep), sep)

    def _item(self, parse_method: Callable[[], Any], sep: TokenType) -> Callable[[], Any]:
        """Reads an item of a list; sqlglot skips one that is missing."""

        def item() -> Any:
            begin = self._index
            found = parse_method()
            before, after = self._prev.token_type, self._curr and self._curr.token_type
            # ALL is no item, but a way to group.
            if found is None and before is not TokenType.ALL and sep in (before, after):
                self._refuse("nothing stands beside the comma", self._tokens[begin - 1])
            return found

        return item

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        keys = self._index + (not skip_group_by_token)
        found = super()._parse_group(skip_group_by_token)
        words = [each.token_type for each in self._tokens[keys : keys + 2]] if found else []
        if words == [TokenType.L_PAREN, TokenType.R_PAREN]:
            self._refuse("GROUP BY () is GROUPING SETS (()) in Spark", self._tokens[keys])
        if words[:1] == [TokenType.DISTINCT]:
            self._refuse("GROUP BY has no DISTINCT in Spark", self._tokens[keys])
        if found and self._prev.token_type is TokenType.COMMA:
            self._refuse("nothing stands beside the comma", self._prev)
        return found

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        begin = self._curr
        found = super()._parse_alias(this, explicit)
        if begin and begin.token_type is TokenType.ALIAS:
            if this is None:
                self._refuse("nothing stands before AS", begin)
            self._require_name(begin, found is not this)
        return found

    def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
        begin = self._curr
        found = super()._parse_table_alias(*args, **options)
        if begin and begin.token_type is TokenType.ALIAS:
            self._require_name(begin, found is not None)
        name = found and found.this
        if isinstance(name, exp.Identifier) and not name.quoted and name.name.upper() in _NO_ALIAS:
            self._refuse(f"{name.name.upper()} is no alias of a table without backticks", begin)
        return found

    def _require_name(self, begin: Token, found: bool) -> None:
        last = self._prev
        no_name = last.token_type in (TokenType.NUMBER, TokenType.STRING)
        if not found or (no_name and self._tokens[self._index - 2] is begin):
            self._refuse("no name follows AS", begin)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        begin = self._prev
        found = super()._parse_projections()
        if not found[0] or begin.token_type is TokenType.ALIAS:
            self._refuse("SELECT returns no column", begin)
        return found

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        begin, values = self._prev, self._next
        found = super()._parse_in(this, alias)
        if values and values.token_type is TokenType.VALUES:
            self._refuse("IN takes VALUES only as (SELECT * FROM VALUES …)", values)
        if not (found.args.get("query") or found.expressions or found.args.get("unnest")):
            self._refuse("no list in parentheses follows IN", begin)
        return found

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        begin, before = self._curr, self._prev.token_type
        found = super()._parse_window_spec()
        after = self._curr and self._curr.token_type
        whole = found["value"] == "CURRENT ROW" or (found["value"] and found["side"])
        both = before is TokenType.AND or (before is TokenType.BETWEEN) is (after is TokenType.AND)
        if not whole or not both or (begin and begin.token_type is TokenType.BETWEEN):
            self._refuse("the bounds of the window's frame are not complete", begin)
        return found

    def _parse_cast(self, *args: Any, **options: Any) -> exp.Expr:
        begin = self._index
        found = super()._parse_cast(*args, **options)
        depth, word = 0, begin
        for index in range(begin, self._index):
            kind = self._tokens[index].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if not depth and kind is TokenType.ALIAS:
                word = index + 1
        self._require_type(word)
        return found

    def _parse_dcolon(self) -> exp.Expr | None:
        begin = self._index
        found = super()._parse_dcolon()
        self._require_type(begin)
        return found

    def _parse_type(self, *args: Any, **options: Any) -> exp.Expr | None:
        begin = self._index
        found = super()._parse_type(*args, **options)
        typed = self._index > begin + 1 and self._tokens[begin].token_type in self.TYPE_TOKENS
        if typed and self._tokens[begin + 1].token_type is TokenType.STRING:
            self._require_type(begin)
        return found

    def _require_type(self, begin: int) -> None:
        """Refuse a type of other engines: x::text, CAST(x AS JSONB), x::int[]."""
        for token, following in pairwise(self._tokens[begin : self._index + 1]):
            kind, word = token.token_type, token.text.lower()
            if kind is TokenType.L_BRACKET:
                self._refuse("an array has the type ARRAY<…> in Spark", token)
            if kind not in self.TYPE_TOKENS or following.token_type is TokenType.COLON:
                continue
            sized = word not in _WITH_LENGTH or following.token_type is TokenType.L_PAREN
            if word not in _TYPES or not sized:
                better = _TYPES_INSTEAD.get(word)
                instead = f"; write {better}" if better else ""
                need = "a type" if word not in _TYPES else "a type without a length"
                self._refuse(f"{word.upper()} is not {need} of Spark{instead}", token)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        token, before, begin = self._curr, self._prev, self._index
        found = super()._parse_bracket(this)
        if token and token.token_type is TokenType.L_BRACKET:
            if this is None or before.text.upper() == "ARRAY":
                self._refuse("an array is written ARRAY(…) in Spark", token)
            inside = self._tokens[begin : self._index]
            if any(each.token_type is TokenType.COLON for each in inside):
                self._refuse("a part of an array is written SLICE(x, begin, length)", token)
        return found

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        begin = self._curr
        argument = self._item(lambda: self._parse_lambda(alias=alias), TokenType.COMMA)
        found = self._parse_csv(argument)
        if begin and begin.token_type is TokenType.SELECT:
            self._refuse("a subquery in a call needs parentheses of its own", begin)
        return found

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        found = super()._parse_join(*args, **options)
        if found and self._prev.token_type is TokenType.ON:
            self._refuse("no condition follows ON", self._prev)
        return found

    def _parse_query_modifiers(self, this: Any) -> Any:
        begin = self._index
        found = super()._parse_query_modifiers(this)
        depth, last = 0, -1
        for token in self._tokens[begin : self._index]:
            kind = token.token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth or kind not in _CLAUSES:
                continue
            if _CLAUSES.index(kind) < last:
                earlier = _CLAUSES[last].name.replace("_", " ")
                later = kind.name.replace("_", " ")
                self._refuse(f"{later} must stand before {earlier}", token)
            last = _CLAUSES.index(kind)
        for lateral in found.args.get("laterals") or () if found else ():
            if not lateral.args.get("view"):
                self._refuse("a comma or JOIN is missing before LATERAL", self._tokens[begin])
        return found


class StreamTables(Spark):
    class Parser(StrictParser):
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
                self._refuse("no * follows the name of a table", self._prev)
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
                return self._shifted()
            [*tighter, level] = levels
            this = self._left_to_right(tighter)
            while self._match_set(level):
                made = level[self._prev.token_type]
                this = self.expression(made(this=this, expression=self._left_to_right(tighter)))
            return this

        def _shifted(self) -> exp.Expr | None:
            this = self._parse_term()
            while self._next and self._curr.end + 1 == self._next.start:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    made: Any = exp.BitwiseLeftShift
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    made = _unsigned if self._match(TokenType.GT) else exp.BitwiseRightShift
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
