"""``query |> step |> step``: each step is a SELECT over the query before it.

    FROM t |> WHERE a                       SELECT * FROM t WHERE a
           |> AGGREGATE SUM(b) AS s         SELECT k, SUM(b) AS s FROM t GROUP BY k
              GROUP BY k
           |> EXTEND e AS x                 SELECT *, e AS x FROM (…)
           |> DROP x                        SELECT * EXCEPT (x) FROM (…)
           |> SET b = e                     SELECT * REPLACE (e AS b) FROM (…)
           |> JOIN u ON …                   SELECT * FROM (…) JOIN u ON …
           |> AS u                          SELECT * FROM (…) AS u
           |> ORDER BY a |> LIMIT 3         SELECT * FROM (…) ORDER BY a LIMIT 3

Unlike a subquery, a step keeps the tables of its columns: ``FROM t |> LIMIT 3 |> SELECT t.a``.
Steps that a SELECT has clauses for, one after the other, are one SELECT.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.strict_parser import StrictParser
from dagster_streamtables.compiler.text.table_mentions import SETS
from dagster_streamtables.compiler.text.token_edits import keyword_of

_ORDERS = ("order", "sort", "cluster", "distribute")
_LAST = (*_ORDERS, "limit", "offset")
_TOKENS_OF_LAST = {
    TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY,
    TokenType.LIMIT, TokenType.OFFSET,
}  # fmt: skip
_OPEN = {"expressions", "from_", "joins", "laterals", "where"}
_OF_SETS = {"CUBE", "ROLLUP", "GROUPING", "ALL"}
_KEEPS_TABLES, _NUMBER, _OF_STEP = "st_keeps_tables", "st_number", "st_of_step"


def keeps_tables(relation: exp.Expr) -> bool:
    """Whether it is a step of a pipe, whose columns have the tables that they had in it."""
    return bool(relation.meta.get(_KEEPS_TABLES))


def keep_tables(relation: exp.Expr, like: exp.Expr) -> None:
    """Let a relation that stands for another be such a step if the other one is."""
    if keeps_tables(like):
        relation.meta[_KEEPS_TABLES] = True


def number_of(mention: exp.Expr) -> int | None:
    """The number of a column of FROM that a key of AGGREGATE is."""
    return mention.meta.get(_NUMBER)


def is_of_step(star: exp.Expr) -> bool:
    """Whether a star is the step SET or DROP, which name columns that there must be."""
    return bool(star.meta.get(_OF_STEP))


def is_after_order(query: exp.Expr) -> bool:
    """Whether an earlier step put the rows of a SELECT into an order, which is no longer theirs."""
    clause = query.args.get("from_")
    below = clause.this if clause is not None and not query.args.get("joins") else None
    while isinstance(below, exp.Subquery) and _KEEPS_TABLES in below.meta:
        step = below.this
        if any(step.args.get(each) for each in _ORDERS):
            return not (step.args.get("limit") or step.args.get("offset"))
        clause = step.args.get("from_")
        grouped = step.args.get("group") or step.args.get("distinct") or step.args.get("joins")
        below = clause.this if clause is not None and not grouped else None
    return False


class PipeParser(StrictParser):
    """Reads pipes, by the rule ``operatorPipeRightSide`` of Spark's grammar."""

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        found = super()._parse_set_operations(this)
        begin = self._curr
        if not isinstance(found, exp.Query | exp.Values) or not self._match(TokenType.PIPE_GT):
            return found
        if any(found.args.get(each) for each in _LAST):
            self._refuse(
                "ORDER BY, LIMIT or OFFSET stands before a pipe", begin,
                "write it as a step: |> ORDER BY …",
            )  # fmt: skip
        found = self._parse_step(found)
        while self._match(TokenType.PIPE_GT):
            found = self._parse_step(found)
        if self._curr and self._curr.token_type in _TOKENS_OF_LAST:
            return self._parse_query_modifiers(_over(found))
        found = super()._parse_set_operations(found)
        after = self._curr
        if self._parse_join():
            self._refuse("a join follows a step of a pipe", after, "write |> before the join")
        return self._parse_set_operations(found)

    def _parse_pipe_syntax_query(self, query: Any) -> Any:
        # sqlglot's own steps lose the tables of columns.
        return query

    def _parse_select(self, *args: Any, consume_pipe: bool = True, **options: Any) -> Any:
        # sqlglot takes the step after FROM t, LATERAL (SELECT …) AS l for one of the subquery.
        return super()._parse_select(*args, consume_pipe=False, **options)

    def _parse_step(self, query: exp.Expr) -> exp.Expr:
        word = keyword_of(self._curr) if self._curr else ""
        if isinstance(query, exp.Values):
            query = exp.select("*").from_(query, copy=False)
        match word:
            case "WHERE":
                return self._parse_step_where(query)
            case "SELECT":
                return self._parse_step_select(query)
            case "EXTEND":
                self._advance()
                select = _open(query)
                select.set("expressions", [exp.Star(), *self._parse_projections()[0]])
                return select
            case "DROP":
                self._advance()
                select, dropped = _open(query), self._parse_csv(self._parse_column)
                return _set_star(select, exp.Star(except_=dropped))
            case "SET":
                return self._parse_step_set(query)
            case "AS":
                self._advance()
                select = _over(query)
                alias = exp.TableAlias(this=self._parse_id_var())
                select.args["from_"].this.set("alias", alias)
                select.args["from_"].this.meta[_KEEPS_TABLES] = False
                return select
            case "AGGREGATE":
                return self._parse_step_aggregate(query)
            case "PIVOT" | "UNPIVOT":
                select = _over(query)
                select.args["from_"].this.set("pivots", self._parse_pivots())
                return select
            case "TABLESAMPLE":
                select = _over(query)
                select.args["from_"].this.set("sample", self._parse_table_sample())
                return select
        if self._curr and self._curr.token_type in _TOKENS_OF_LAST:
            return self._parse_step_last(query)
        begin = self._curr or self._prev
        found = self._parse_step_set_operation(query, word) or self._parse_step_join(query, word)
        if found is None:
            self._refuse(
                f"Spark has no step {word or 'without words'} in a pipe",
                begin,
                "write a step that it has, such as WHERE or SELECT",
            )
        return found

    def _parse_step_set_operation(self, query: exp.Expr, word: str) -> exp.Expr | None:
        if word not in SETS:
            return None
        plain = isinstance(query, exp.Select) and not any(map(query.args.get, _LAST))
        return self.parse_set_operation(query if plain else _over(query))

    def _parse_step_join(self, query: exp.Expr, word: str) -> exp.Expr | None:
        join = None if word in ("", ",") else self._parse_join()
        if join is None:
            return None
        fits = _is_open(query) and not (query.args.get("where") or query.args.get("laterals"))
        select = query if fits else _over(query)
        select.append("joins", join)
        return select

    def _parse_step_where(self, query: exp.Expr) -> exp.Expr:
        select = _open(query)
        before, where = select.args.get("where"), self._parse_where()
        if before is not None and where is not None:
            where.set("this", exp.and_(before.this, where.this, copy=False))
        select.set("where", where)
        return select

    def _parse_step_select(self, query: exp.Expr) -> exp.Expr:
        self._advance()
        select = _open(query)
        if self._match(TokenType.DISTINCT):
            select.set("distinct", exp.Distinct())
        elif self._next and self._next.token_type is not TokenType.COMMA:
            self._match(TokenType.ALL)
        select.set("expressions", self._parse_projections()[0])
        while self._match_set((TokenType.GROUP_BY, TokenType.WINDOW), advance=False):
            name, clause = self.QUERY_MODIFIER_PARSERS[self._curr.token_type](self)
            select.set(name, clause)
        return select

    def _parse_step_set(self, query: exp.Expr) -> exp.Expr:
        """Each assignment is a step: it sees what those before it have set."""
        self._advance()
        while True:
            select, begin = _open(query), self._curr
            column = self._parse_id_var()
            if column is None or not self._match(TokenType.EQ):
                self._refuse(
                    "SET takes column = expression", begin or self._prev,
                    "name the column alone, without its table",
                )  # fmt: skip
            value = exp.Alias(this=self._parse_disjunction(), alias=column)
            _set_star(select, exp.Star(replace=[value]))
            if not self._match(TokenType.COMMA):
                return select
            query = select

    def _parse_step_aggregate(self, query: exp.Expr) -> exp.Expr:
        self._advance()
        select = _open(query)
        without_calls = self._match(TokenType.GROUP_BY, advance=False)
        calls = [] if without_calls else self._parse_projections()[0]
        keys = self._parse_keys() if self._match(TokenType.GROUP_BY) else []
        select.set("expressions", [*keys, *calls])
        if keys:
            select.set("group", exp.Group(expressions=[key.unalias().copy() for key in keys]))
        return select

    def _parse_keys(self) -> list[exp.Expr]:
        found = self._parse_csv(self._parse_key)
        if self._match_text_seq("WITH"):
            self._refuse_sets(self._prev)
        return found

    def _parse_key(self) -> exp.Expr | None:
        begin = self._curr
        if begin and keyword_of(begin) in _OF_SETS:
            self._refuse_sets(begin)
        found = self._parse_expression()
        number = found.unalias() if found else None
        if found is None or not isinstance(number, exp.Literal) or not number.is_int:
            return found
        if found is not number:  # with a name it is a constant, which GROUP BY takes for a place
            kind = exp.DType.INT if int(number.name) < 2**31 else exp.DType.BIGINT
            found.set("this", exp.Cast(this=number, to=exp.DataType(this=kind)))
            return found
        key = exp.Column(this=exp.to_identifier(number.name, quoted=True))
        key.this.update_positions(begin)
        key.meta[_NUMBER] = int(number.name)
        return key

    def _refuse_sets(self, token: Token) -> NoReturn:
        self._refuse(
            "Spark has no grouping sets in AGGREGATE, nor GROUP BY ALL", token,
            "write SELECT … GROUP BY … instead of this step and those before it",
        )  # fmt: skip

    def _parse_step_last(self, query: exp.Expr) -> exp.Expr:
        """ORDER BY and the like, LIMIT, OFFSET."""
        kind, args = self._curr.token_type, query.args
        if kind not in (TokenType.LIMIT, TokenType.OFFSET):
            select = _open(query)
        else:
            fits = _is_open(query) or args.get("order") or args.get("offset")
            taken = args.get("limit") or (kind is TokenType.OFFSET and args.get("offset"))
            select = query if fits and not taken else _over(query)
        while self._curr and self._curr.token_type in _TOKENS_OF_LAST:
            name, clause = self.QUERY_MODIFIER_PARSERS[self._curr.token_type](self)
            select.set(name, clause)
        return select


def _over(query: exp.Expr) -> exp.Select:
    """All columns of a query, with the tables that they have in it."""
    in_parentheses = isinstance(query, exp.Subquery) and _clauses(query) == {"this"}
    below = query if in_parentheses else exp.Subquery(this=query)
    below.meta[_KEEPS_TABLES] = True
    return exp.select("*").from_(below, copy=False)


def _set_star(select: exp.Select, star: exp.Star) -> exp.Select:
    star.meta[_OF_STEP] = True
    select.set("expressions", [star])
    return select


def _open(query: exp.Expr) -> exp.Select:
    """A SELECT of all columns of the query, to which clauses may be added."""
    return query if isinstance(query, exp.Select) and _is_open(query) else _over(query)


def _is_open(query: exp.Expr) -> bool:
    """Whether it is ``SELECT * FROM … WHERE …``."""
    plain = isinstance(query, exp.Select) and _clauses(query) <= _OPEN
    return plain and query.expressions == [exp.Star()]


def _clauses(query: exp.Expr) -> set[str]:
    return {name for name, clause in query.args.items() if clause}
