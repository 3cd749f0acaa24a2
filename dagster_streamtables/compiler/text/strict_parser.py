"""The parser of Spark's SQL that refuses what Spark refuses, each with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.token_edits import clause_at, depths, keyword_of, outermost

Builders = dict[Any, Callable[..., Any]]

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
_BARE_COMMA, _WITHOUT_COMMA = "nothing stands beside the comma", "remove the comma"
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


_ROUNDS, _SPAN, _END = "rounds", "st_span", "st_end"


def rounds_of(cte: exp.CTE) -> int | None:
    """The rounds that a recursion may have, by its MAX RECURSION LEVEL; None without one.

    In Spark, 9 levels are the base and 8 rounds of the step.
    """
    return cte.args["alias"].meta.get(_ROUNDS)


def span_of_order(order: exp.Expr) -> tuple[int, int] | None:
    """The first position of an ORDER BY in the text, and the one after its last."""
    return order.meta.get(_SPAN)


def end_of_keys(window: exp.Expr) -> int | None:
    """The position after PARTITION BY and ORDER BY of a window in parentheses."""
    return window.meta.get(_END)


class SparkRefusesError(ParseError):
    """Spark's parser also refuses the text, so no mode helps."""

    def __init__(self, why: str, errors: list[dict[str, Any]], fix: str) -> None:
        super().__init__(why, errors)
        self.fix = fix


class StrictParser(Spark.Parser):
    """Refuses what sqlglot forgives and Spark does not; `python -m qa.damage` looks for more.

    Otherwise the refresh would fail, with a message about SQL that nobody wrote.
    """

    _end_of_keys: int | None = None
    """Of the window that was read last."""

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

    def _refuse(self, why: str, token: Token, fix: str) -> NoReturn:
        place = {"line": token.line, "col": token.col, "highlight": token.text}
        raise SparkRefusesError(why, [{"description": why, **place}], fix)

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
                self._refuse(_BARE_COMMA, self._tokens[begin - 1], _WITHOUT_COMMA)
            return found

        return item

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        keys = self._index + (not skip_group_by_token)
        found = super()._parse_group(skip_group_by_token)
        words = [each.token_type for each in self._tokens[keys : keys + 2]] if found else []
        if words == [TokenType.L_PAREN, TokenType.R_PAREN]:
            self._refuse(
                "GROUP BY () is GROUPING SETS (()) in Spark", self._tokens[keys],
                "write GROUP BY GROUPING SETS (())",
            )  # fmt: skip
        if words[:1] == [TokenType.DISTINCT]:
            self._refuse(
                "GROUP BY has no DISTINCT in Spark", self._tokens[keys],
                "list the sets in GROUPING SETS, each once",
            )  # fmt: skip
        if found and self._prev.token_type is TokenType.COMMA:
            self._refuse(_BARE_COMMA, self._prev, _WITHOUT_COMMA)
        return found

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        begin = self._curr
        found = super()._parse_alias(this, explicit)
        if begin and begin.token_type is TokenType.ALIAS:
            if this is None:
                self._refuse("nothing stands before AS", begin, "write a column before AS")
            self._require_name(begin, found is not this)
        return found

    def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
        begin = self._curr
        found = super()._parse_table_alias(*args, **options)
        index = self._index
        if found and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
            number = self._match(TokenType.NUMBER) and self._prev.text
            after = self._curr and self._curr.token_type
            if number and number.isdecimal() and after in (TokenType.ALIAS, TokenType.L_PAREN):
                found.meta[_ROUNDS] = int(number) - 1
            else:
                self._retreat(index)
        if begin and begin.token_type is TokenType.ALIAS:
            self._require_name(begin, found is not None)
        name = found and found.this
        if isinstance(name, exp.Identifier) and not name.quoted and name.name.upper() in _NO_ALIAS:
            self._refuse(
                f"{name.name.upper()} is no alias of a table without backticks", begin,
                f"write `{name.name}` in backticks, or another alias",
            )  # fmt: skip
        return found

    def _require_name(self, begin: Token, found: bool) -> None:
        last = self._prev
        no_name = last.token_type in (TokenType.NUMBER, TokenType.STRING)
        if not found or (no_name and self._tokens[self._index - 2] is begin):
            self._refuse(
                "no name follows AS", begin, "write a name after AS, not a text or a number"
            )

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        begin = self._prev
        found = super()._parse_projections()
        if not found[0] or begin.token_type is TokenType.ALIAS:
            self._refuse("SELECT returns no column", begin, "write a column after SELECT")
        return found

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        begin, values = self._prev, self._next
        found = super()._parse_in(this, alias)
        if values and values.token_type is TokenType.VALUES:
            self._refuse(
                "IN takes VALUES only as a query", values, "write IN (SELECT * FROM VALUES …)"
            )
        if not (found.args.get("query") or found.expressions or found.args.get("unnest")):
            self._refuse(
                "no list in parentheses follows IN", begin, "write the values in parentheses"
            )
        return found

    def _parse_order(self, *args: Any, **options: Any) -> exp.Expr | None:
        begin = self._curr
        found = super()._parse_order(*args, **options)
        if isinstance(found, exp.Order) and begin:
            found.meta[_SPAN] = begin.start, self._prev.end + 1
        return found

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        begin = self._index
        keys, order = super()._parse_partition_and_order()
        if order is not None:  # of a window, which sqlglot reads otherwise than other orders
            read = self._tokens[begin : self._index]
            [at, *_] = (*outermost(read, TokenType.ORDER_BY), *outermost(read, TokenType.SORT_BY))
            order.meta[_SPAN] = read[at].start, self._prev.end + 1
        self._end_of_keys = self._curr.start if self._curr else None
        return keys, order

    def _parse_window(self, *args: Any, **options: Any) -> exp.Expr | None:
        found = super()._parse_window(*args, **options)
        if isinstance(found, exp.Window) and self._prev.token_type is TokenType.R_PAREN:
            found.meta[_END] = self._end_of_keys
        return found

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        begin, before = self._curr, self._prev.token_type
        found = super()._parse_window_spec()
        after = self._curr and self._curr.token_type
        whole = found["value"] == "CURRENT ROW" or (found["value"] and found["side"])
        both = before is TokenType.AND or (before is TokenType.BETWEEN) is (after is TokenType.AND)
        if not whole or not both or (begin and begin.token_type is TokenType.BETWEEN):
            self._refuse(
                "the bounds of the window's frame are not complete", begin,
                "write a frame such as BETWEEN 1 PRECEDING AND CURRENT ROW",
            )  # fmt: skip
        return found

    def _parse_cast(self, *args: Any, **options: Any) -> exp.Expr:
        begin = self._index
        found = super()._parse_cast(*args, **options)
        words = outermost(self._tokens[begin : self._index], TokenType.ALIAS)
        self._require_type(begin + words[-1] + 1 if words else begin)
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
                self._refuse("an array has another type in Spark", token, "write ARRAY<…>")
            if kind not in self.TYPE_TOKENS or following.token_type is TokenType.COLON:
                continue
            sized = word not in _WITH_LENGTH or following.token_type is TokenType.L_PAREN
            if word not in _TYPES or not sized:
                better = _TYPES_INSTEAD.get(word)
                need = "a type" if word not in _TYPES else "a type without a length"
                self._refuse(
                    f"{word.upper()} is not {need} of Spark", token,
                    f"write {better or 'a type of Spark, such as STRING'}",
                )  # fmt: skip

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        token, before = self._curr, self._prev
        found = super()._parse_bracket(this)
        is_array = this is None or keyword_of(before) == "ARRAY"
        if token and token.token_type is TokenType.L_BRACKET and is_array:
            self._refuse("Spark has no brackets around arrays", token, "write ARRAY(…)")
        return found

    def _parse_colon_as_variant_extract(self, this: exp.Expr | None) -> exp.Expr | None:
        after = self._next.text if self._is_at_colon() and self._next else "_"
        is_constant = isinstance(this, exp.Literal) and self._is_at_colon()  # no variant: x[1:y]
        if is_constant or not (after[0].isidentifier() or after[0] in "[`"):
            self._refuse_slice()
        return super()._parse_colon_as_variant_extract(this)

    def _parse_slice(self, this: exp.Expr | None) -> exp.Expr | None:
        if self._is_at_colon():
            self._refuse_slice()
        return this

    def _is_at_colon(self) -> bool:
        return bool(self._curr) and self._curr.token_type is TokenType.COLON

    def _refuse_slice(self) -> NoReturn:
        self._refuse(
            "the name of a field of a variant follows a colon", self._curr,
            "write SLICE(x, begin, length) for a part of an array",
        )  # fmt: skip

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        begin = self._curr
        argument = self._item(lambda: self._parse_lambda(alias=alias), TokenType.COMMA)
        found = self._parse_csv(argument)
        if begin and begin.token_type is TokenType.SELECT:
            self._refuse(
                "a subquery in a call needs parentheses of its own", begin,
                "write the subquery in parentheses",
            )  # fmt: skip
        return found

    def _parse_from(self, *args: Any, **options: Any) -> exp.From | None:
        begin = self._curr
        found = super()._parse_from(*args, **options)
        if found and isinstance(found.this, exp.Select | exp.SetOperation):
            self._refuse("a query in FROM has no parentheses", begin, "write FROM (SELECT …)")
        return found

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        found = super()._parse_join(*args, **options)
        if found and self._prev.token_type is TokenType.ON:
            self._refuse("no condition follows ON", self._prev, "write a condition after ON")
        return found

    def _parse_query_modifiers(self, this: Any) -> Any:
        begin = self._index
        found = super()._parse_query_modifiers(this)
        last = -1
        for i, depth in enumerate(depths(self._tokens[begin : self._index]), start=begin):
            token, kind = self._tokens[i], self._tokens[i].token_type
            if depth or kind not in _CLAUSES or not clause_at(self._tokens, i):
                continue
            if _CLAUSES.index(kind) < last:
                earlier = _CLAUSES[last].name.replace("_", " ")
                later = kind.name.replace("_", " ")
                self._refuse(
                    f"{later} must stand before {earlier}", token,
                    f"move {later} before {earlier}",
                )  # fmt: skip
            last = _CLAUSES.index(kind)
        for lateral in found.args.get("laterals") or () if found else ():
            if not lateral.args.get("view"):
                self._refuse(
                    "a comma or JOIN is missing before LATERAL", self._tokens[begin],
                    "write a comma before LATERAL",
                )  # fmt: skip
        return found
