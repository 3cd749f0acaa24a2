"""The rules that all dialects share: the syntax that means the same in Spark, and how the rest is
rewritten or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sqlglot import exp
from sqlglot.transforms import eliminate_distinct_on

from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    Rules,
    literal_int,
    outer_node,
    refuse_if,
)
from dagster_streamtables.compiler.text.table_mentions import free_tables, own_aliases


class Reason(NamedTuple):
    """Why a node is never translated."""

    why: str
    fix: str
    called: str = ""


Calls = Mapping[str, Rule | None]


@dataclass(frozen=True)
class Dialect:
    """The rules of a dialect; nodes without a rule are refused."""

    plain: frozenset[type[exp.Expr]]
    """Nodes whose meaning sqlglot preserves when printing."""
    rewrites: Rules
    refused: Mapping[type[exp.Expr], Reason]
    calls: Calls = field(default_factory=dict[str, Rule | None])
    """Functions unknown to sqlglot; None if Spark has the function with the same meaning."""
    prepare: Callable[[exp.Query, Columns], None] | None = None
    """Changes the tree first of all."""
    check: Callable[[Query], None] | None = None
    """Refuses queries before anything is rewritten."""

    def extend(
        self,
        plain: tuple[type[exp.Expr], ...],
        rewrites: Rules,
        refused: Mapping[type[exp.Expr], Reason],
        calls: Calls | None = None,
        prepare: Callable[[exp.Query, Columns], None] | None = None,
        check: Callable[[Query], None] | None = None,
    ) -> Dialect:
        """A dialect with more rules, and with its own calls."""
        rules = {**self.rewrites, **rewrites}
        refused = {**self.refused, **refused}
        return Dialect(self.plain | set(plain), rules, refused, calls or {}, prepare, check)

    def has_call(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Anonymous) and node.name.lower() in self.calls

    def rule_of(self, node: exp.Expr) -> Rule | None:
        """The rule that rewrites a node, if any."""
        if self.has_call(node):
            return self.calls[node.name.lower()]
        return self.rewrites.get(type(node))


_PLAIN = frozenset({
    exp.From, exp.Where, exp.Having, exp.Order, exp.Offset, exp.With, exp.Qualify, exp.Subquery,
    exp.TableAlias, exp.Distinct, exp.Alias, exp.Literal, exp.Null, exp.Boolean, exp.Paren,
    exp.And, exp.Or, exp.Not, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between,
    exp.Exists, exp.Case, exp.If, exp.Mul, exp.Neg, exp.Mod, exp.Coalesce, exp.Nullif,
    exp.DataTypeParam, exp.Var, exp.Values, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Window,
    exp.Filter, exp.Count, exp.Sum, exp.Min, exp.Max, exp.RowNumber, exp.Ntile, exp.Lag,
    exp.Lead, exp.IgnoreNulls, exp.RespectNulls, exp.Abs, exp.Lower, exp.Upper, exp.Replace,
    exp.LimitOptions, exp.CurrentDate, exp.CurrentTimestamp, exp.Sqrt, exp.Exp, exp.Ln,
})  # fmt: skip

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SELECT = frozenset({
    "with_", "expressions", "distinct", "limit", "from_", "joins", "where", "group", "having",
    "windows", "order", "offset", "qualify", "operation_modifiers",
})  # fmt: skip
_TABLE = frozenset({"this", "db", "catalog", "alias", "joins"})
_JOIN_METHODS, _JOIN_KINDS = ("", "NATURAL"), ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
_T = exp.DataType.Type
_TYPES = {
    _T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.FLOAT, _T.DOUBLE, _T.DECIMAL, _T.BOOLEAN,
    _T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR, _T.NCHAR, _T.DATE, _T.TIMESTAMP, _T.TIMESTAMPTZ,
    _T.TIMESTAMPLTZ, _T.TIMESTAMPNTZ, _T.DATETIME, _T.DATETIME2,
}  # fmt: skip
_NO_ZONE = (_T.TIMESTAMP, _T.DATETIME, _T.DATETIME2)


def only(node: exp.Expr, query: Query, *, names: frozenset[str]) -> None:
    """Keep a node that has no other parts than these."""
    for name, value in node.args.items():
        if value and name not in names:
            part = value[0] if isinstance(value, list) else value
            raise query.no_rule_error(part if isinstance(part, exp.Expr) else node)


def _identifier(node: exp.Expr, query: Query) -> None:
    if not _NAME.fullmatch(node.name):
        node.set("quoted", True)


def _table(node: exp.Expr, query: Query) -> exp.Expr | None:
    if isinstance(node.this, exp.Identifier):
        only(node, query, names=_TABLE)
        return None
    name_column(node, query)
    if isinstance(node.parent, exp.Join):
        return exp.Lateral(this=node.this.copy(), alias=node.args["alias"].copy())
    return None


def name_column(node: exp.Expr, query: Query) -> None:
    """Name the one column of a function's rows like their alias, unless it has a name."""
    alias = node.args.get("alias")
    if alias is None or not alias.name:
        raise query.refusal(node, "its column has no name in Spark", "give it an alias")
    if not alias.columns:
        alias.set("columns", [alias.this.copy()])


def _join(node: exp.Expr, query: Query) -> None:
    assert isinstance(node, exp.Join)
    if node.method.upper() not in _JOIN_METHODS or node.kind.upper() not in _JOIN_KINDS:
        words = " ".join(part for part in (node.method, node.side, node.kind) if part)
        raise query.refusal(
            node,
            "Spark has no such join",
            "write it as a view in Spark SQL",
            called=f"{words} JOIN",
        )
    if isinstance(node.this, exp.Lateral) and _is_of_row_around(node.this, node):
        # LATERAL shows Spark the tables of this FROM alone, and a function without it the others.
        node.set("this", exp.Table(this=node.this.this.copy(), alias=node.this.args["alias"]))


def _is_of_row_around(function: exp.Lateral, join: exp.Join) -> bool:
    select = join.find_ancestor(exp.Select)
    if isinstance(function.this, exp.Subquery) or select is None:
        return False
    tables = free_tables(function.this)
    named = all(each.table for each in function.this.find_all(exp.Column))
    return named and bool(tables) and not tables & set(own_aliases(select))


def _select(node: exp.Expr, query: Query) -> exp.Expr | None:
    only(node, query, names=_SELECT)
    distinct = node.args.get("distinct")
    if distinct is None or not distinct.args.get("on"):
        return None
    # It becomes a subquery that numbers the rows. A star would include the number, and a LIMIT
    # would apply before the filter by number.
    if any(output.is_star for output in node.selects):  # type: ignore[attr-defined]
        raise query.refusal(distinct, "it is translated to row numbers, which * would include",
                            "list the columns", called="DISTINCT ON with *")  # fmt: skip
    if node.args.get("limit") or node.args.get("offset"):
        raise query.refusal(distinct, "the limit would apply before DISTINCT ON",
                            "put DISTINCT ON in a subquery, and LIMIT around it",
                            called="DISTINCT ON with LIMIT")  # fmt: skip
    return eliminate_distinct_on(node.copy())


def _limit(node: exp.Expr, query: Query) -> exp.Expr | None:
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        called = "WITH TIES" if options.args.get("with_ties") else "PERCENT"
        raise query.refusal(node, "Spark has neither WITH TIES nor PERCENT",
                            "number the rows by RANK() in a subquery, and filter by the number",
                            called=called)  # fmt: skip
    count = node.args.get("count") if isinstance(node, exp.Fetch) else node.args["expression"]
    if literal_int(count) is None:
        raise query.refusal(node, "Spark's LIMIT needs a constant", "write a whole number")
    node.set("limit_options", None)
    return exp.Limit(expression=count) if isinstance(node, exp.Fetch) else None


def _window(node: exp.Expr, query: Query) -> None:
    if node.args.get("exclude"):
        raise query.refusal(
            node.parent or node, "Spark's frames have no EXCLUDE",
            "subtract the row's own value from the sum, or write it as a view in Spark SQL",
            called="EXCLUDE",
        )  # fmt: skip
    if str(node.args.get("kind") or "").upper() not in ("", "ROWS", "RANGE"):
        raise query.refusal(node.parent or node, "Spark's frames are ROWS or RANGE",
                            "number the groups by DENSE_RANK(), and use RANGE over that",
                            called="GROUPS")  # fmt: skip


def _cte(node: exp.Expr, query: Query) -> None:
    node.set("materialized", None)  # a hint for the other system's planner


_check_group = refuse_if(
    lambda node, _: any(isinstance(e, exp.Tuple) and not e.expressions for e in node.expressions),
    "Spark has no empty GROUP BY", "omit it: aggregates alone are one group", called="GROUP BY ()",
)  # fmt: skip
_check_set_operation = refuse_if(
    lambda node, _: any(map(node.args.get, ("by_name", "side", "kind", "on"))),
    "Spark matches columns by position", "list the columns of both sides in one order",
    called="BY NAME",
)  # fmt: skip
_require_subquery = refuse_if(
    lambda node, _: not isinstance(node.this.unnest(), exp.Query),
    "Spark supports subqueries only", "unnest the array, or use array functions",
)  # fmt: skip
"""``= ANY (SELECT …)`` is left to the compiler."""


def _is(node: exp.Expr, query: Query) -> None:
    """``x IS NULL IS TRUE``: Spark's parser needs parentheses around the inner test."""
    if isinstance(node.this, exp.Predicate | exp.Connector | exp.Not):
        node.set("this", exp.paren(node.this.copy()))


def _star(node: exp.Expr, query: Query) -> None:
    for name in ("replace", "rename"):
        if node.args.get(name):
            raise query.refusal(node, f"Spark has no * {name.upper()}", "list the columns")


def _data_type(node: exp.Expr, query: Query) -> None:
    assert isinstance(node, exp.DataType)
    if node.this not in _TYPES:
        raise query.refusal(node.parent or node, "Spark has no type with the same values",
                            "cast to another type, or write it as a view in Spark SQL",
                            called=f"the type {node.sql(query.dialect)}")  # fmt: skip
    if node.this in _NO_ZONE:
        node.set("this", _T.TIMESTAMPNTZ)


def row(node: exp.Expr, query: Query) -> None:
    """A row value stays if the expression around it handles it; otherwise it is refused."""
    parent = outer_node(node)
    inside = (
        exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Values, exp.Distinct,
        exp.Group, exp.GroupingSets, exp.Cube, exp.Rollup, exp.Window,
    )  # fmt: skip
    counted = isinstance(parent, exp.Distinct) and parent.args.get("on") is not node
    if counted or not isinstance(parent, inside):
        raise query.refusal(node, "Spark compares NULLs inside a row differently",
                            "compare column by column", called="a row of values")  # fmt: skip


def equal_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(a, b) = (c, d)`` is ``a = c AND b = d``; Spark compares structs, in which NULLs are
    equal."""
    left, right = node.this.unnest(), node.args["expression"].unnest()
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        pairs = zip(left.expressions, right.expressions, strict=True)
        equal = isinstance(node, exp.EQ | exp.NullSafeEQ)
        joined: Callable[..., exp.Expr] = exp.and_ if equal else exp.or_
        return exp.paren(
            joined(*[type(node)(this=a.copy(), expression=b.copy()) for a, b in pairs])
        )
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        raise query.refusal(node, "Spark compares NULLs inside a row differently", "use IN")
    return None


def in_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Rows IN a list, as equalities of their columns joined by OR."""
    left, among = node.this.unnest(), node.expressions
    if not isinstance(left, exp.Tuple) or not among:
        return None
    equal = [exp.EQ(this=left.copy(), expression=each.copy()) for each in among]
    return exp.paren(exp.or_(*[equal_rows(each, query) or each for each in equal]))


COMMON = Dialect(
    _PLAIN,
    {
        exp.Select: _select, exp.Identifier: _identifier, exp.Table: _table,
        exp.Join: _join, exp.Limit: _limit, exp.Fetch: _limit,
        exp.WindowSpec: _window, exp.CTE: _cte, exp.Group: _check_group,
        exp.Column: refuse_if(lambda node, _: node.args.get("join_mark"), "Spark has no (+)",
                              "write LEFT JOIN … ON", called="(+)"),
        exp.Grouping: refuse_if(
            lambda node, _: len(node.expressions) > 1, "Spark's grouping() has one argument",
            "write one grouping() for each column"),
        **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _check_set_operation),
        exp.Star: _star, exp.Tuple: row, exp.EQ: equal_rows, exp.NEQ: equal_rows,
        exp.NullSafeEQ: equal_rows, exp.NullSafeNEQ: equal_rows, exp.In: in_rows,
        exp.Is: _is, exp.Any: _require_subquery, exp.All: _require_subquery,
        exp.DataType: _data_type,
        exp.Ordered: partial(only, names=frozenset({"this", "desc", "nulls_first"})),
        **dict.fromkeys((exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist),
                        partial(only, names=frozenset())),
    },
    {
        exp.Lock: Reason(
            "a refresh reads fixed versions of its sources", "leave it out", "a locking clause"
        ),
        exp.TableSample: Reason(
            "each run would sample different rows",
            "filter by a key, for example WHERE id % 10 = 0", "TABLESAMPLE",
        ),
    },
)  # fmt: skip
