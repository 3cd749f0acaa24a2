"""Rewrite a query's tree to fewer forms, before its names are resolved.

ORDER BY without LIMIT                     removed: a table has no order
LIMIT ALL                                  removed: the only word that LIMIT takes
SELECT DISTINCT a … ORDER BY f(a) LIMIT n  the order in a query around it, see `desugar_orders`
(… ORDER BY x LIMIT n) AS t (a, b)         renamed one level up: ORDER BY means the old names;
                                           also the first SELECT of a UNION, and of WITH t (a, b)
(a JOIN b …) AS t, ((SELECT …))            a subquery
WITH t AS (…) … FROM t AS u (a, b)         FROM (SELECT * FROM t) AS u (a, b)
x IN ((SELECT …))                          a list of one value, as to Spark, and not a subquery
EXISTS (SELECT * FROM …)                   SELECT 1: no column is needed, so none is read
EXISTS (WITH t AS (q) SELECT … FROM t)     FROM (q) AS t, see `_inline_definitions`
WINDOW w AS (…), v AS w                    v AS (…)
LATERAL VIEW explode(x) t                  t AS col, the column names that Spark gives
SELECT CAST(a AS BIGINT)                   AS a, likewise
STRUCT(Id, n + 1)                          STRUCT(Id AS `Id`, n + 1 AS `col2`), likewise
grouping__id                               grouping_id(), see `desugar_grouping_ids`
collate(a, 'UTF8_LCASE')                   a COLLATE UTF8_LCASE, see `desugar_collations`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.analyze.from_relations import desugar_parentheses
from dagster_streamtables.compiler.analyze.group_and_order_by import (
    desugar_grouping_ids,
    desugar_orders,
)
from dagster_streamtables.compiler.analyze.lateral_views import (
    desugar_generator,
    desugar_time_windows,
)
from dagster_streamtables.compiler.analyze.output_names import (
    columns_of_call,
    spark_name,
)
from dagster_streamtables.compiler.analyze.pivots import desugar_pivots
from dagster_streamtables.compiler.analyze.storable_types import desugar_collations
from dagster_streamtables.compiler.text.group_by import windows_by_name
from dagster_streamtables.compiler.text.table_mentions import (
    aliases_in,
    definition_of,
    definitions_with_column_aliases,
)


def normalize_tree(tree: exp.Query, columns: Mapping[str, str]) -> exp.Query:
    """A rewritten copy of the tree.

    Args:
        tree: As parsed.
        columns: All columns of all sources, and their types.
    """
    tree = tree.copy()
    for rewrite, kinds in _REWRITES:
        if tree.find(*kinds) is not None:
            tree = rewrite(tree, columns) or tree
    return tree


def _drop_orders(tree: exp.Query) -> None:
    """Drop LIMIT ALL, and ORDER BY without LIMIT."""
    for query in list(tree.find_all(exp.Query)):
        limit = query.args.get("limit")
        if isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Var):
            query.set("limit", None)
        if query.args.get("order") and not (query.args.get("limit") or query.args.get("offset")):
            query.set("order", None)


def _put_orders_inside(tree: exp.Query) -> None:
    """Put a SELECT that names columns into a subquery, if its ORDER BY uses their old names."""
    for renamed in list(tree.find_all(exp.Subquery, exp.CTE)):
        query = renamed.this
        while isinstance(query, exp.SetOperation | exp.Subquery) and not query.args.get("order"):
            query = query.this
        if not renamed.alias_column_names or not query.args.get("order"):
            continue
        whole = query is renamed.this and isinstance(query, exp.SetOperation)
        if whole and isinstance(renamed.parent, exp.With) and renamed.parent.recursive:
            continue  # Spark takes no ORDER BY there
        around = exp.select("*")
        query.replace(around)
        alias = renamed.args["alias"].this
        name = exp.to_identifier("t") if alias is None else alias.copy()
        around.from_(exp.Subquery(this=query, alias=exp.TableAlias(this=name)), copy=False)


def _drop_columns_of_exists(tree: exp.Query) -> None:
    for exists in tree.find_all(exp.Exists):
        query = exists.this.unnest()
        if isinstance(query, exp.Select) and all(each.is_star for each in query.expressions):
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "one", quoted=True)])


def _desugar_selects(tree: exp.Query, columns: Mapping[str, str]) -> None:
    for select in list(tree.find_all(exp.Select)):
        desugar_time_windows(select)
        desugar_generator(select, columns)
        _expand_window_names(select)


def _name_columns_of_functions(tree: exp.Query, columns: Mapping[str, str]) -> None:
    """Name the columns of table functions as Spark does, if their authors name none."""
    relations = tree.find_all(exp.Lateral, exp.Table)
    functions = (e for e in relations if isinstance(e, exp.Lateral) or isinstance(e.this, exp.Func))
    for number, function in enumerate(functions):
        names = None if function.alias_column_names else columns_of_call(function.this, columns)
        if names:
            name = exp.to_identifier(function.alias or f"st_generated_{number}", quoted=True)
            named = [exp.to_identifier(each, quoted=True) for each in names]
            function.set("alias", exp.TableAlias(this=name, columns=named))


def _desugar_definition_aliases(tree: exp.Query) -> None:
    """WITH t AS (…) … FROM t AS u (a, b)  →  FROM (SELECT * FROM t) AS u (a, b)"""
    for table in list(definitions_with_column_aliases(tree)):
        alias, clauses = table.args["alias"], {c: table.args.get(c) for c in _AFTER_RELATION}
        for clause in ("alias", *_AFTER_RELATION):
            table.set(clause, None)
        named = exp.Subquery(alias=alias, **clauses)
        table.replace(named)
        named.set("this", exp.select("*").from_(table, copy=False))


_AFTER_RELATION = ("joins", "laterals")


def _desugar_double_parentheses(tree: exp.Query) -> None:
    for asked in tree.find_all(exp.In):
        query = asked.args.get("query")
        if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Subquery):
            asked.set("query", None)
            asked.set("expressions", [query.this])
    for call in list(tree.find_all(exp.Anonymous)):
        # The parser takes EXISTS ((SELECT …)) for the function of arrays.
        first = call.expressions[0] if call.expressions else None
        if call.name.lower() == "exists" and isinstance(first, exp.Query):
            call.replace(exp.Exists(this=first.unnest()))


def _merge_frame_intervals(tree: exp.Query) -> None:
    """INTERVAL 23 DAYS 4 HOURS is a sum to the parser; Spark takes only a literal as a bound."""
    for frame in tree.find_all(exp.WindowSpec):
        for name in ("start", "end"):
            bound = frame.args.get(name)
            parts = list(bound.flatten()) if isinstance(bound, exp.Add) else []
            if parts and all(isinstance(each, exp.Interval) for each in parts):
                words = " ".join(f"{each.this.sql('spark')} {each.args['unit']}" for each in parts)
                frame.set(name, exp.Var(this=f"INTERVAL {words}"))


def _name_outputs(tree: exp.Query, columns: Mapping[str, str]) -> None:
    aliases = aliases_in(tree)
    for select in tree.find_all(exp.Select):
        for item in list(select.expressions):
            named = isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.Star)
            name = None if named else spark_name(item, aliases, columns)
            if name is not None:
                item.replace(exp.alias_(item.copy(), name, quoted=True))


def _expand_window_names(select: exp.Select) -> None:
    """Replace a window that only names another by that one's definition."""
    windows = windows_by_name(select)
    for window in select.args.get("windows") or []:
        meant = windows.get(window.alias.lower())
        if meant is not None:
            window.set("alias", None)
            window.meta.update(meant.meta)
            for part in ("partition_by", "order", "spec"):
                window.set(part, meant.copy().args.get(part))


def _plainly(rewrite: Callable[[exp.Query], exp.Query | None]) -> Callable[..., exp.Query | None]:
    return lambda tree, columns: rewrite(tree)


_ITEM = "st_zipped"
_AROUND_VALUES = (exp.Alias, exp.Select, exp.PropertyEQ, exp.Func, exp.Lambda)


def _keep_field_names(tree: exp.Query) -> None:
    """Let the fields of structs keep the names and the letter case that Spark gives them.

        struct(Id, n + 1, s.x)      STRUCT(Id AS `Id`, n + 1 AS `col2`, s.x AS `x`)
        (Id, 2 AS y)                STRUCT(Id AS `Id`, 2 AS `y`)
        CAST(p AS STRUCT<Id: INT>)  CAST(p AS STRUCT<`Id`: INT>)
        arrays_zip(a, array(1))     TRANSFORM(ARRAYS_ZIP(COALESCE(a), ARRAY(1)),
                                        z -> STRUCT(z.`0` AS `a`, z.`1` AS `1`))

    The qualifier writes names in lower case, and columns get other names in operators; ``to_json``
    would show both.
    """
    for zipped in list(tree.find_all(exp.ArraysZip)):
        if any(map(_own_name, zipped.expressions)):
            zipped.replace(_name_zip_fields(zipped))
    for row in list(_rows(tree)):
        fields = [_field(each, f"col{place}") for place, each in enumerate(row.expressions, 1)]
        row.replace(exp.Struct(expressions=fields))
    for node in tree.find_all(exp.PropertyEQ, exp.ColumnDef):
        if isinstance(node.this, exp.Identifier):
            node.this.set("quoted", True)
            keep_case(node.this)


def has_field_names(tree: exp.Query) -> bool:
    """Whether it names fields of structs."""
    named = tree.find(exp.Struct, exp.ArraysZip, exp.ColumnDef) is not None
    return named or any(True for _ in _rows(tree))


def _rows(tree: exp.Query) -> Iterator[exp.Tuple]:
    """Structs that are written in parentheses."""
    for row in tree.find_all(exp.Tuple):
        is_value = isinstance(row.parent, _AROUND_VALUES) and not row.find_ancestor(exp.Pivot)
        if is_value and row.expressions:
            yield row


def keep_case(name: exp.Identifier) -> None:
    """Let the qualifier of sqlglot leave a name as it is."""
    name.meta["case_sensitive"] = True


def _field(value: exp.Expr, otherwise: str) -> exp.PropertyEQ:
    name = exp.to_identifier(_own_name(value) or otherwise, quoted=True)
    return exp.PropertyEQ(this=name, expression=value.unalias().copy())


def _own_name(value: exp.Expr) -> str:
    """What Spark calls a value among others; empty if by its place."""
    named = isinstance(value, exp.Alias | exp.Column | exp.Identifier)
    return value.alias_or_name if named else ""


def _name_zip_fields(call: exp.ArraysZip) -> exp.Expr:
    """The call over values without names, whose fields get theirs."""
    names = [_own_name(each) or str(place) for place, each in enumerate(call.expressions)]
    arrays = [exp.Coalesce(this=e.copy()) if _own_name(e) else e.copy() for e in call.expressions]
    item = exp.to_identifier(_ITEM)
    fields = [
        _field(
            exp.Dot(this=item.copy(), expression=exp.to_identifier(str(place), quoted=True)), name
        )
        for place, name in enumerate(names)
    ]
    made = exp.Lambda(this=exp.Struct(expressions=fields), expressions=[item])
    return exp.Transform(this=exp.ArraysZip(expressions=arrays), expression=made)


_RELATIONS = (exp.From, exp.Join, exp.CTE, exp.SetOperation)


def _inline_definitions(tree: exp.Query) -> None:
    """Replace definitions in a subquery that is an expression, or LATERAL, by subqueries.

        EXISTS (WITH t AS (q) SELECT 1 FROM t WHERE …)  →  EXISTS (SELECT 1 FROM (q) AS t WHERE …)

    Such a subquery is computed for each row that it mentions, and a definition only once.
    """
    for query in list(tree.find_all(exp.Query)):
        clause = query.args.get("with_")
        if clause is None or clause.args.get("recursive") or not _is_in_expression(query):
            continue
        for part in (*clause.expressions, query):
            for table in list(part.find_all(exp.Table)):
                cte = definition_of(table)
                if cte is not None and cte.parent is clause:
                    table.replace(_subquery_of(cte, table))
        query.set("with_", None)


def _is_in_expression(query: exp.Query) -> bool:
    around = query.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    return around is not None and not isinstance(around, _RELATIONS)


def _subquery_of(cte: exp.CTE, mention: exp.Table) -> exp.Subquery:
    """A definition as a subquery that has the alias of its mention."""
    given, own = cte.args["alias"], mention.args.get("alias") or exp.TableAlias()
    name, columns = own.this or mention.this, own.columns or given.columns
    alias = exp.TableAlias(this=name.copy(), columns=[each.copy() for each in columns])
    return exp.Subquery(this=cte.this.copy(), alias=alias, joins=mention.args.get("joins"))


_ORDERS = (exp.Order, exp.Limit, exp.Offset)
_REWRITES: tuple[tuple[Callable[..., exp.Query | None], tuple[type[exp.Expr], ...]], ...] = (
    (_plainly(_keep_field_names), (exp.ArraysZip, exp.Tuple, exp.PropertyEQ, exp.ColumnDef)),
    (_plainly(desugar_parentheses), (exp.Lateral, exp.Subquery)),
    (_plainly(_desugar_double_parentheses), (exp.In, exp.Anonymous)),
    (_plainly(desugar_pivots), (exp.Pivot,)),
    (_plainly(_desugar_definition_aliases), (exp.With,)),
    (_plainly(_inline_definitions), (exp.With,)),
    (desugar_grouping_ids, (exp.GroupingSets, exp.Cube, exp.Rollup)),
    (_name_outputs, (exp.Select,)),
    (_plainly(desugar_collations), (exp.Collate, exp.DataType)),
    (_plainly(_merge_frame_intervals), (exp.WindowSpec,)),
    (_plainly(_drop_orders), _ORDERS),
    (_plainly(desugar_orders), _ORDERS),
    (_plainly(_put_orders_inside), _ORDERS),
    (_plainly(_drop_columns_of_exists), (exp.Exists,)),
    (_desugar_selects, (exp.Join, exp.Subquery, exp.Lateral, exp.Func, exp.Window)),
    (_name_columns_of_functions, (exp.Lateral, exp.Func)),
)
"""Rewrites, each with nodes without which a tree stays as it is. They change the tree, and return
it if it has another root. Each may count on those before it."""
