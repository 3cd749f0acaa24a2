"""Clauses of Postgres: rows, groups, IN as a value, and the names of outputs."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres import first_rows, interval_outputs
from dagster_streamtables.compiler.dialect.rules import orders
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Rules
from dagster_streamtables.compiler.dialect.rules.made import made
from dagster_streamtables.compiler.dialect.rules.query import Query
from dagster_streamtables.compiler.dialect.rules.rows import row

_NAMES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.Coalesce: "coalesce", exp.Nullif: "nullif", exp.Greatest: "greatest", exp.Least: "least",
    exp.Lower: "lower", exp.Upper: "upper", exp.Round: "round", exp.Abs: "abs",
    exp.Concat: "concat", exp.ConcatWs: "concat_ws", exp.Replace: "replace", exp.Floor: "floor",
    exp.GroupConcat: "string_agg", exp.RowNumber: "row_number", exp.Rank: "rank",
    exp.DenseRank: "dense_rank", exp.Lag: "lag", exp.Lead: "lead", exp.Extract: "extract",
    exp.TimestampTrunc: "date_trunc", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or",
    exp.Array: "array", exp.Exists: "exists", exp.AtTimeZone: "timezone", exp.MD5: "md5",
    exp.RegexpReplace: "regexp_replace", exp.SplitPart: "split_part", exp.Left: "left",
    exp.Right: "right", exp.PercentileCont: "percentile_cont", exp.Mode: "mode",
    exp.PercentileDisc: "percentile_disc", exp.CurrentDate: "current_date", exp.Ntile: "ntile",
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.AnyValue: "any_value",
    exp.Substring: "substring", exp.Explode: "unnest", exp.Sqrt: "sqrt", exp.Repeat: "repeat",
    exp.Reverse: "reverse", exp.Translate: "translate", exp.Stddev: "stddev",
    exp.Variance: "variance", exp.Boolean: "bool",
}  # fmt: skip
_TYPES = {"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2", "text": "text",
          "double precision": "float8", "real": "float4", "decimal": "numeric", "date": "date",
          "varchar": "varchar", "boolean": "bool", "timestamp": "timestamp",
          "timestamptz": "timestamptz", "time": "time"}  # fmt: skip
_UNNAMED = "?column?"
_THROUGH = (exp.Paren, exp.Window, exp.Filter, exp.WithinGroup, exp.Bracket, exp.Collate,
            exp.IgnoreNulls, exp.RespectNulls)  # fmt: skip


def select(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A SELECT: its outputs get the names that they have in Postgres."""
    assert isinstance(node, exp.Select)
    interval_outputs.spell_out(node, query)
    orders.require_known(node, query)
    if first_rows.takes_ties(node):
        return first_rows.with_ties(node)
    if orders.first_of(node) and orders.is_kept(node):
        return first_rows.of_each(node)
    return COMMON.mended[exp.Select](node, query)


def named(tree: exp.Query) -> None:
    """Give the outputs of a query, and of its subqueries in FROM, their names in Postgres.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT count(*), x + 1 FROM t", dialect="postgres")
    >>> named(tree)
    >>> tree.sql("postgres")
    'SELECT COUNT(*) AS count, x + 1 AS "?column?" FROM t'
    """
    for node in tree.find_all(exp.Select):
        if not _is_relation(node):
            continue
        for output in node.selects:
            if isinstance(output, exp.Alias | exp.Aliases | exp.Column) or output.is_star:
                continue
            name = output_name(output)
            quoted = not name.isidentifier()
            alias = exp.to_identifier(name, quoted=quoted)
            output.replace(exp.Alias(this=output.copy(), alias=alias))


def _is_relation(node: exp.Expr) -> bool:
    """Whether its columns have names that matter."""
    around = node.parent
    while isinstance(around, exp.SetOperation | exp.CTE | exp.Subquery):
        if isinstance(around, exp.CTE):
            return True
        if isinstance(around, exp.Subquery):
            return isinstance(around.parent, exp.From | exp.Join | exp.Lateral | type(None))
        around = around.parent
    return around is None


def output_name(node: exp.Expr) -> str:
    """The name that Postgres gives to an output without an alias."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, _THROUGH):
        return output_name(node.this)
    if isinstance(node, exp.Cast):
        inner = output_name(node.this)
        type_ = node.to.sql("postgres").lower().split("(")[0]
        return inner if inner != _UNNAMED else _TYPES.get(type_, type_)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        found = output_name(default) if default is not None else _UNNAMED
        return found if isinstance(default, exp.Column) else "case"
    if isinstance(node, exp.Subquery) and len(node.selects) == 1:
        return node.selects[0].alias or output_name(node.selects[0])
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return _NAMES.get(type(node), node.sql_name().lower() if isinstance(node, exp.Func)
                      and not isinstance(node, exp.Binary | exp.Unary) else _UNNAMED)  # fmt: skip


def compared_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(a, b) < (c, d)``: the first columns that differ decide."""
    left, right = node.this.unnest(), node.args["expression"].unnest()
    if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        return None
    strict = exp.LT if isinstance(node, exp.LT | exp.LTE) else exp.GT
    pairs = list(zip(left.expressions, right.expressions, strict=True))
    a, b = pairs[-1]
    found: exp.Expr = type(node)(this=a.copy(), expression=b.copy())
    for a, b in reversed(pairs[:-1]):
        first = strict(this=a.copy(), expression=b.copy())
        equal = exp.EQ(this=a.copy(), expression=b.copy())
        found = exp.or_(first, exp.and_(equal, exp.paren(found)))
    return exp.paren(found)


def compared_row(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A row of values beside another in a comparison is rewritten by that; one that is counted is a
    struct, in which NULLs are equal as they are there."""
    if isinstance(node.parent, exp.Distinct) and isinstance(node.parent.parent, exp.Count):
        named = [part for place, each in enumerate(node.expressions)
                 for part in (exp.Literal.string(f"c{place}"), each.copy())]  # fmt: skip
        return exp.Anonymous(this="NAMED_STRUCT", expressions=named)
    around = node.parent.parent if isinstance(node.parent, exp.Paren) else node.parent
    if isinstance(around, exp.Overlaps):
        return None
    if not isinstance(around, exp.LT | exp.LTE | exp.GT | exp.GTE) or not all(
        isinstance(around.args[name].unnest(), exp.Tuple) for name in ("this", "expression")
    ):
        row(node, query)
    return None


def require_in_from(node: exp.Expr, query: Query) -> exp.Expr:
    """The item of FROM that a function which returns rows is.

    Raises:
        InvalidDefinition: It stands elsewhere.
    """
    if not isinstance(node.parent, exp.Table | exp.Lateral):
        raise query.refusal(node, "Spark makes rows in FROM", "put it in FROM, with an alias")
    return node.parent


def name_functions(tree: exp.Query) -> None:
    """A function in FROM without an alias is called as itself."""
    for node in tree.find_all(exp.Table, exp.Lateral):
        function = node.this
        if isinstance(function, exp.Anonymous) and not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=exp.to_identifier(function.name.lower())))


def between(node: exp.Expr, query: Query) -> exp.Expr | None:
    """SYMMETRIC: the ends may come in either order."""
    if not node.args.get("symmetric"):
        return None
    ends = {"x": node.this, "a": node.args["low"], "b": node.args["high"]}
    return made("(_x BETWEEN _a AND _b OR _x BETWEEN _b AND _a)", **ends)


def found_in(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x IN (SELECT …)`` as a value: NULL where that is not known, where Spark has FALSE."""
    subquery = node.args.get("query")
    if subquery is None or _is_condition(node):
        return COMMON.mended[exp.In](node, query)
    return _as_value(node, subquery.unnest(), query)


def any_of(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x = ANY (SELECT …)`` and ``x <> ALL (SELECT …)`` as values."""
    right = node.args["expression"]
    inner = right.this.unnest() if isinstance(right, exp.Any | exp.All) else None
    same = isinstance(node, exp.EQ) == isinstance(right, exp.Any)
    if not isinstance(inner, exp.Query) or not same or _is_condition(node):
        return None
    found = _as_value(node, inner, query)
    return exp.Not(this=exp.paren(found)) if isinstance(node, exp.NEQ) else found


def _as_value(node: exp.Expr, inner: exp.Expr, query: Query) -> exp.Expr:
    simple = isinstance(inner, exp.Select) and not any(
        inner.args.get(each) for each in ("group", "having", "limit", "offset", "with_", "qualify")
    )
    if isinstance(node.this.unnest(), exp.Tuple) or not simple or inner.find(exp.AggFunc):
        raise query.refusal(
            node, "as a value, NULL for what is not known is FALSE in Spark",
            "write it in WHERE, or as EXISTS with a condition",
        )  # fmt: skip
    assert isinstance(inner, exp.Select)
    is_null = exp.Is(this=inner.selects[0].unalias().copy(), expression=exp.null())
    within = exp.In(this=node.this.copy(), query=exp.Subquery(this=inner.copy()))
    parts = {"x": node.this, "i": within, "e": exp.Exists(this=inner.copy()),
             "u": exp.Exists(this=inner.copy().where(is_null))}  # fmt: skip
    template = (
        "CASE WHEN _i THEN TRUE WHEN _x IS NULL AND _e OR _x IS NOT NULL AND _u THEN NULL "
        "ELSE FALSE END"
    )
    return made(template, **parts)


def _is_condition(node: exp.Expr) -> bool:
    """Whether only TRUE counts, so that FALSE and NULL mean the same."""
    around = node
    while around.parent is not None and not isinstance(around.parent, exp.Query):
        around = around.parent
        if isinstance(around, exp.Where | exp.Having | exp.Qualify | exp.Join):
            return True
    return False


def grouped(node: exp.Expr, query: Query) -> exp.Expr | None:
    """GROUP BY (): one group, as without it where there are aggregates."""
    if node.args.get("all") is False:
        raise query.refusal(node, "Spark keeps equal grouping sets", "list the sets, each once",
                            called="GROUP BY DISTINCT")  # fmt: skip
    keys = [key for key in node.expressions if not _is_empty(key)]
    select_ = node.parent
    counted = isinstance(select_, exp.Select) and any(
        each.find(exp.AggFunc) for each in select_.selects
    )
    if keys or len(keys) == len(node.expressions) or not counted:
        return COMMON.mended[exp.Group](node, query)
    node.parent.set("group", None)  # type: ignore[union-attr]
    return None


def _is_empty(key: exp.Expr) -> bool:
    return isinstance(key, exp.Tuple) and not key.expressions


def grouping(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``grouping(a, b)``: a bit for each, the last one lowest."""
    if len(node.expressions) < 2:
        return None
    bits = [exp.Grouping(expressions=[each.copy()]) for each in node.expressions]
    found: exp.Expr = exp.cast(bits[0], "INT")
    for bit in bits[1:]:
        found = made("_a * 2 + _b", a=found, b=exp.cast(bit, "INT"))
    return found


RULES: Rules = {
    exp.Select: select, exp.Fetch: first_rows.limited, exp.Limit: first_rows.limited,
    exp.Between: between, exp.Group: grouped, exp.Grouping: grouping,
    exp.Tuple: compared_row, **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE), compared_rows),
}  # fmt: skip
