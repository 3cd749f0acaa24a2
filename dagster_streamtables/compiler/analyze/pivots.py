"""PIVOT and UNPIVOT, as the grouping and the table function that they are.

    t PIVOT (SUM(x) FOR k IN (1))       (SELECT * EXCEPT (x, k), CASE WHEN COUNT(*) FILTER (k <=> 1)
                                        > 0 THEN SUM(x) FILTER (k <=> 1) END AS `1`
                                        FROM t GROUP BY ALL)
    t UNPIVOT (v FOR n IN (a, b AS c))  (SELECT * EXCEPT (a, b), n, v FROM t LATERAL VIEW
                                        explode(array(('a', a), ('c', b))) WHERE v IS NOT NULL)

Spark first groups by the other columns and by k, then looks for each value of k. So a group without
rows of a value has NULL there, and not COUNT's 0, as long as all results are numbers or booleans;
else Spark nulls what the aggregates take from other rows. Where that matters and it is not known,
PIVOT is refused.

Spark names the columns of a PIVOT whose author gives no names:

    FOR k IN (1, 'x', NULL, DATE '2024-01-31')     1, x, null, 2024-01-31
    FOR (k, r) IN ((1, 'x'), (2, NULL))            {1, x}, {2, null}
    SUM(a), COUNT(*) FOR k IN (1)                  1_sum(a), 1_count(1)

A value is named by its text, a tuple as the struct that it is to Spark, and an aggregate, if there
are several, by its call. No stored table has a column with such characters, but a query around the
PIVOT may mention it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dagster_streamtables.compiler.analyze.output_names import constant_name
from dagster_streamtables.compiler.scope.scopes import star_without
from dagster_streamtables.compiler.text.group_by import calls, name_of_call, name_of_function
from dagster_streamtables.compiler.text.pipes import keep_tables
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import named_struct

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_BY_THEIR_NAMES = frozenset(("avg", "count", "max", "min", "sum"))
"""Aggregates that Spark prints by the name that calls them. Not FIRST and the like: a full refresh
writes other calls for them, whose value depends on no order of rows."""


def _name_of_value(value: exp.Expr) -> str:
    name = _name(value.unnest())
    if name is None:
        raise Refusal(
            value,
            "a value of PIVOT has no name",
            why="Spark would name its column by the text of the value, which only Spark can write",
            fix="give it one with AS",
        )
    return name


def _name(value: exp.Expr) -> str | None:
    match value:
        case exp.Null():
            return "null"
        case exp.Paren():
            return _name(value.unnest())
        case exp.Neg():
            name = constant_name(value)
            return name if name is not None and float(name) else None
        case exp.Cast():
            return _cast(value)
        case exp.Tuple() | exp.Array():
            names = [_name(each.unnest()) for each in value.expressions]
            marks = "{}" if isinstance(value, exp.Tuple) else "[]"
            known = ", ".join(each for each in names if each is not None)
            return None if None in names else f"{marks[0]}{known}{marks[1]}"
    return constant_name(value)


def _cast(value: exp.Cast) -> str | None:
    """The name of a date, and of a whole number or a text of another type."""
    inner, kind = value.this.unnest(), value.to
    if not isinstance(inner, exp.Literal):
        return None
    if kind.is_type(exp.DType.DATE):
        return inner.name if inner.is_string and _DATE.fullmatch(inner.name) else None
    whole = kind.is_type(*exp.DataType.INTEGER_TYPES) and not inner.is_string and inner.is_int
    text = kind.is_type(exp.DType.TEXT)
    return _name(inner) if whole or text else None


def _name_of_aggregate(aggregate: exp.Expr) -> str:
    """The call as Spark prints it: over columns by their own names."""
    call, name = aggregate.unnest(), name_of_call(aggregate.unnest())
    given = call.expressions if isinstance(call, exp.Anonymous) else [call.this, *call.expressions]
    word = ""
    if given and isinstance(given[0], exp.Distinct):
        word, given = "DISTINCT ", given[0].expressions
    if name == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
        return "count(1)"
    plain = all(isinstance(each, exp.Column) for each in given)
    if name not in _BY_THEIR_NAMES or not plain:
        raise Refusal(
            aggregate,
            "one of several aggregates of PIVOT has no name",
            why="Spark would name its columns by the text of the call, which only Spark can write",
            fix="give it one with AS",
        )
    return f"{name}({word}{', '.join(each.name for each in given)})"


_OF_NUMBERS = """
    approx_count_distinct avg bool_and bool_or corr count count_if every mean std stddev stddev_pop
    stddev_samp sum var_pop var_samp variance
"""
_OF_NONE = """
    any_value avg bool_and bool_or every first first_value last last_value max max_by mean median
    min min_by mode sum
"""
_NUMBERS = frozenset(_OF_NUMBERS.split())
"""Aggregates that return a number or a boolean."""
_NULL_OF_NONE = frozenset(_OF_NONE.split())
"""Aggregates that return NULL over no rows."""
_LISTS = frozenset({"collect_list", "collect_set", "array_agg"})
_ROW = "st_unpivoted"
AS_TYPE_OF = "st_as_type_of"
"""A call that `cast_pivot_values` replaces once types are known: ``x`` as the second's type."""
IF_NUMBERS = "st_if_numbers"
"""Likewise: the first argument if all after the second are numbers or booleans, else the second."""


def desugar_pivots(tree: exp.Query) -> None:
    """Replace each PIVOT and UNPIVOT by the subquery that it means."""
    for select in list(tree.find_all(exp.Select)):
        _desugar_joined_pivot(select)
    for clause in list(tree.find_all(exp.From)):
        pivots = clause.this.args.get("pivots") or []
        if pivots:
            _desugar_relation(clause, pivots)


def _desugar_joined_pivot(select: exp.Select) -> None:
    """Replace ``a JOIN b ON … PIVOT (…)``, and ``a, b PIVOT (…)``.

    Both pivot the rows of all that is joined before, whatever the grammar says.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    for place, join in enumerate(joins):
        pivots = [*(join.this.args.get("pivots") or []), *(join.args.get("pivots") or [])]
        if not pivots:
            continue
        join.set("pivots", None)
        join.this.set("pivots", None)
        [pivot, *others] = pivots
        relation = select.args["from_"].this
        query = _pivot_query(relation, pivot)
        query.set("joins", joins[: place + 1])
        alias = exp.to_identifier(pivot.alias or "st_pivot", quoted=True)
        relation = exp.Subquery(this=query, alias=exp.TableAlias(this=alias), pivots=others)
        select.set("from_", exp.From(this=relation))
        select.set("joins", joins[place + 1 :])
        _desugar_joined_pivot(select)
        return


def _desugar_relation(clause: exp.From, pivots: list[exp.Expr]) -> None:
    relation = clause.this
    joins = relation.args.get("joins")
    relation.set("joins", None)
    relation.set("pivots", None)
    name, before = relation.alias_or_name, relation
    for pivot in pivots:
        query = _pivot_query(relation, pivot)
        alias = exp.to_identifier(pivot.alias or name or "st_pivot", quoted=True)
        relation = exp.Subquery(this=query, alias=exp.TableAlias(this=alias))
        if not pivot.alias:
            keep_tables(relation, before)
    relation.set("joins", joins)
    clause.set("this", relation)


def _pivot_query(relation: exp.Expr, pivot: exp.Expr) -> exp.Select:
    build = _build_unpivot if pivot.args.get("unpivot") else _build_pivot
    return build(relation, pivot)


def _rest(columns: Sequence[exp.Expr]) -> exp.Star:
    """The columns of the relation but these."""
    return star_without(dict.fromkeys(each.name.lower() for each in columns))


def _build_pivot(relation: exp.Expr, pivot: exp.Expr) -> exp.Select:
    if len(pivot.args["fields"]) != 1:
        raise Refusal(
            pivot,
            "PIVOT by several lists of values",
            why="Spark takes one, of one column or of several in parentheses",
            fix="write FOR (a, b) IN ((1, 2), …)",
        )
    [values] = pivot.args["fields"]
    keys = _parts(values.this)
    aggregates = list(pivot.expressions)
    is_null = _is_null_without_rows(aggregates, pivot)
    outputs: list[exp.Expr] = []
    for value in values.expressions:
        chosen = _condition(keys, value.this if isinstance(value, exp.PivotAlias) else value)
        for each in aggregates:
            name = _name_of(value, each, alone=len(aggregates) == 1)
            result = _filter_aggregates(each.unalias(), chosen)
            rows = _filter_aggregates(exp.Count(this=exp.Star()), chosen)
            some = exp.GT(this=rows, expression=exp.Literal.number(0))
            null = exp.Case().when(some, result.copy())
            if is_null is None:
                of = [null, result, *(other.unalias().copy() for other in aggregates)]
                result = exp.Anonymous(this=IF_NUMBERS, expressions=of)
            outputs.append(exp.alias_(null if is_null else result, name, quoted=True))
    mentioned = [each for part in (*keys, *aggregates) for each in part.find_all(exp.Column)]
    query = exp.select(_rest(mentioned), *outputs).from_(relation, copy=False)
    query.set("group", exp.Group(all=True))
    return query


def _is_null_without_rows(aggregates: list[exp.Expr], pivot: exp.Expr) -> bool | None:
    """Whether Spark returns NULL if a group has no rows of a value, whatever the aggregate; None if
    only the types of all results tell."""
    found = [name_of_function(call) for each in aggregates for call in calls(each)]
    if set(found) <= _NUMBERS:
        return True
    if all(map(_is_plain, aggregates)) and (set(found) <= _NULL_OF_NONE or set(found) & _LISTS):
        return False
    if all(map(_is_plain, aggregates)) and set(found) <= _NUMBERS | _NULL_OF_NONE:
        return None
    raise _differing(pivot)


def _differing(pivot: exp.Expr) -> Refusal:
    return Refusal(
        pivot,
        "PIVOT by aggregates that differ over no rows",
        why="what Spark returns for a group without rows of a value depends on the types of all",
        fix="write one PIVOT for each kind of aggregate, or MAX(CASE WHEN … END) for each column",
    )


def _is_plain(aggregate: exp.Expr) -> bool:
    """Whether it is one call, or its values in an order, as `make_deterministic` writes a list."""
    value = aggregate.unalias()
    value = value.this if isinstance(value, exp.ArraySort) else value
    return next(calls(value), None) is value


def _condition(keys: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    values = _parts(value) if len(keys) > 1 else [value.unnest()]
    if len(values) != len(keys):
        raise Refusal(
            value,
            f"a value of PIVOT of {len(values)} columns for {len(keys)}",
            why="each value says what all the columns after FOR have",
            fix="write as many values in parentheses as there are columns",
        )
    equal = list[exp.Expr]()
    for key, each in zip(keys, values, strict=True):
        typed = exp.Anonymous(this=AS_TYPE_OF, expressions=[each.copy(), key.copy()])
        equal.append(exp.NullSafeEQ(this=key.copy(), expression=typed))
    return exp.and_(*equal)


def _filter_aggregates(aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The aggregates in an expression, over the rows that satisfy a condition."""
    copy = aggregate.copy()
    holder = exp.Tuple(expressions=[exp.paren(copy) if isinstance(copy, exp.Binary) else copy])
    for call in list(calls(holder)):
        if isinstance(call, exp.Filter):
            both = exp.and_(call.expression.this, condition.copy())
            call.expression.set("this", both)
        else:
            where = exp.Where(this=condition.copy())
            call.replace(exp.Filter(this=call.copy(), expression=where))
    return holder.expressions[0]


def _parts(value: exp.Expr) -> list[exp.Expr]:
    """What parentheses hold; without any, the value alone."""
    return list(value.expressions) if isinstance(value, exp.Tuple) else [value.unnest()]


def _name_of(value: exp.Expr, aggregate: exp.Expr, *, alone: bool) -> str:
    name = value.alias if isinstance(value, exp.PivotAlias) else _name_of_value(value)
    return name if alone else f"{name}_{aggregate.alias or _name_of_aggregate(aggregate)}"


def _build_unpivot(relation: exp.Expr, pivot: exp.Expr) -> exp.Select:
    [fields] = pivot.args["fields"]
    [value] = pivot.expressions
    names = [each.name for each in _parts(value)]
    sides = [each.this if isinstance(each, exp.PivotAlias) else each for each in fields.expressions]
    columns = [_parts(each) for each in sides]
    called = [
        each.alias if isinstance(each, exp.PivotAlias) else "_".join(c.name for c in own)
        for each, own in zip(fields.expressions, columns, strict=True)
    ]
    structs = [
        named_struct(
            {"n": exp.Literal.string(name)} | {f"v{i}": each for i, each in enumerate(own)}
        )
        for name, own in zip(called, columns, strict=True)
    ]
    row = exp.column(_ROW, table=_ROW)
    made = [_field(row, f"v{i}") for i in range(len(names))]
    outputs = [
        exp.alias_(value.copy(), name, quoted=True)
        for value, name in zip([_field(row, "n"), *made], [fields.this.name, *names], strict=True)
    ]
    every = [each for own in columns for each in own]
    star = _rest(every)
    star.append("except_", exp.column(_ROW))
    query = exp.select(star, *outputs).from_(relation, copy=False)
    alias = exp.TableAlias(this=exp.to_identifier(_ROW), columns=[exp.to_identifier(_ROW)])
    rows = exp.Explode(this=exp.Array(expressions=structs))
    query.append("laterals", exp.Lateral(this=rows, view=True, alias=alias))
    if not pivot.args.get("include_nulls"):
        known = (exp.Not(this=exp.Is(this=each.copy(), expression=exp.null())) for each in made)
        query.where(exp.or_(*known), copy=False)
    return query


def _field(row: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=row.copy(), expression=exp.to_identifier(name))


def cast_pivot_values(tree: exp.Expr) -> None:
    """Cast the values of PIVOT to the types of the columns that they are compared with, and choose
    what its results are without rows."""
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name == IF_NUMBERS:
            null, result, *every = node.expressions
            node.replace(null if _are_numbers(every) else result)
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name == AS_TYPE_OF:
            value, column = node.expressions
            type_ = column.type
            known = type_ is not None and not type_.is_type(exp.DType.UNKNOWN)
            node.replace(exp.cast(value, type_) if known and type_ is not None else value)


def _are_numbers(results: list[exp.Expr]) -> bool:
    """Whether all are numbers or booleans, which Spark pivots differently."""
    types = [each.type for each in results]
    kinds = (*exp.DataType.NUMERIC_TYPES, exp.DType.BOOLEAN)
    if any(each is None or each.is_type(exp.DType.UNKNOWN) for each in types):
        raise _differing(results[0])
    return all(each is not None and each.is_type(*kinds) for each in types)
