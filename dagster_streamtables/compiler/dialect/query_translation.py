"""Translate a query of another dialect: parse it, rewrite or refuse its parts, print Spark SQL.

Two things are done to the tree of every dialect. Parentheses are added where operators have another
precedence in Spark: in Postgres ``2 | 1 & 0`` is 0 and ``'a' || 1 + 1`` is 'a2', because there all
operators except arithmetic have the same precedence and associate to the left. And stars over joins
by names are written out, because each dialect has their columns in another order:

    SELECT b.*, v FROM a JOIN b USING (k)       SELECT b.y, b.k, v FROM a JOIN b USING (k)

In PostgreSQL and DuckDB, ``b.*`` has the columns in the order of the table; in Spark, merged
columns come first. In DuckDB, ``*`` has a merged column at its place in the left table.
"""

from __future__ import annotations

import difflib
import functools
import warnings
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from dagster_streamtables.compiler.dialect.duckdb import DUCKDB
from dagster_streamtables.compiler.dialect.experimental_dialects import (
    EXAMINED,
    build_experimental_dialect,
)
from dagster_streamtables.compiler.dialect.kinds.kind_inference import Kinds
from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.postgres.postgres_dialect import POSTGRES
from dagster_streamtables.compiler.dialect.rules.dialect import Dialect
from dagster_streamtables.compiler.dialect.rules.rule import Query
from dagster_streamtables.compiler.scope.from_columns import RULES, FromColumn, StarRules
from dagster_streamtables.compiler.scope.scopes import Scopes, joins_by_name
from dagster_streamtables.compiler.text.places import Refusal, place
from dagster_streamtables.compiler.text.query_text import Text, read, tokenize_query
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, StreamTables
from dagster_streamtables.compiler.text.table_mentions import table_name
from dagster_streamtables.errors import ExperimentalDialect, InvalidDefinition, QueryPosition

SPARK = "spark"
"""The dialect that needs no translation."""
TESTED = {"postgres": POSTGRES, "duckdb": DUCKDB}
"""The dialects for which tests compare Spark's results with those of the database itself."""
_LONGEST = 200_000
"""Characters of a translation; Spark plans a longer one for minutes."""


def check_dialect(name: str) -> str:
    """Check that a dialect can be translated, and warn once per process if it is experimental.

    Raises:
        InvalidDefinition: The dialect is unknown, or its differences from Spark were not examined.
    """
    known = sorted({SPARK, *TESTED, *EXAMINED})
    if name in EXAMINED:
        _warn(name)
    if name in known:
        return name
    names = f"the dialects are {', '.join(known)}"
    if name in sqlglot.Dialect.classes and name not in ("", DIALECT):
        raise InvalidDefinition(
            f'queries in the SQL dialect "{name}" cannot be translated',
            why=f"its differences from Spark SQL were not examined; {names}",
            fix="write the query in Spark SQL, or in another dialect",
        )
    near = difflib.get_close_matches(name.lower(), known, n=3)
    raise InvalidDefinition(
        f'there is no SQL dialect "{name}"',
        why=names,
        fix=f"did you mean {' or '.join(near)}?" if near else f'write "{SPARK}"',
    )


@functools.cache
def _warn(name: str) -> None:
    warnings.warn(
        f"the dialect {name} is experimental: its translation follows its documentation and was "
        f"not compared with the database. Compare the table with {name} before you rely on it, or "
        f"write the query in spark, {' or '.join(TESTED)}",
        ExperimentalDialect,
        stacklevel=2,
    )


def tables_of(sql: str, dialect: str) -> tuple[str, ...]:
    """The tables that a query reads, as it spells them; does not translate it.

    Raises:
        InvalidDefinition: The text is not one query of the dialect.
    """
    if dialect == SPARK:
        return tokenize_query(sql).sources
    named = read(sql, dialect).tables()
    named.sort(key=lambda table: table.parts[0].meta["start"])
    return tuple(dict.fromkeys(map(table_name, named)))


def place_of_table(sql: str, dialect: str, name: str) -> QueryPosition | str:
    """Where a query first names a table; empty if it does not.

    Raises:
        InvalidDefinition: The text is not one query of the dialect.
    """
    if dialect == SPARK:
        text = tokenize_query(sql)
        found = (
            text.locate(each.start, each.stop - 1)
            for each in text.source_mentions
            if each.name == name
        )
    else:
        text = read(sql, dialect)
        found = (place(each, text) for each in text.tables() if table_name(each) == name)
    return next(found, "")


def translate(sql: str, dialect: str, columns: Columns | None = None) -> str:
    """A query in Spark SQL; one of ``spark`` is returned unchanged.

    >>> translate("SELECT x FROM t ORDER BY x", "postgres").split()
    ['SELECT', 'x', 'FROM', 't', 'ORDER', 'BY', 'x', 'NULLS', 'LAST']

    Raises:
        InvalidDefinition: As in `translation`.
    """
    return sql if dialect == SPARK else translation(sql, dialect, columns)[0]


def translation(
    sql: str, dialect: str, columns: Columns | None = None, *, stored: bool = True
) -> tuple[str, tuple[str, ...]]:
    """A query of another dialect in Spark SQL, and how its results look different there.

    Args:
        sql: The query.
        dialect: Its dialect.
        columns: The columns of its tables. Constructs that depend on an unknown type are refused.
        stored: Whether its rows are stored; the rows of a view are read on, and keep their types.

    Raises:
        InvalidDefinition: The text is not a query of the dialect, or has no exact translation.
    """
    check_dialect(dialect)
    text = read(sql, dialect)
    _refuse_names(text, dialect)
    rules = TESTED[dialect] if dialect in TESTED else build_experimental_dialect(dialect)
    if columns and dialect in RULES:
        expand_stars(text.tree, columns, RULES[dialect])
    if rules.prepare is not None:
        rules.prepare(text.tree, columns or {})
    query = Query(dialect, text, Kinds(text.tree, columns or {}, dialect), stored)
    _refuse(query, rules)
    if rules.check is not None:
        rules.check(query)
    printed = _print_sql(query, _rewrite_tree(query, rules))
    if len(printed) > max(_LONGEST, 100 * len(sql)):
        raise _subquery_in_the_way(query)
    return printed, tuple(query.notes)


def _refuse_names(text: Text, dialect: str) -> None:
    """Refuse quoted names that differ only in case, which Spark considers equal."""
    quoted: dict[str, str] = {}
    for each in text.tree.find_all(exp.Identifier):
        if not each.quoted:
            continue
        other = quoted.setdefault(each.name.lower(), each.name)
        if other != each.name:
            raise InvalidDefinition(
                f'"{each.name}" cannot be translated from {dialect}',
                where=place(each, text),
                why=f'quoted names are case-sensitive there, but Spark considers "{other}" and '
                f'"{each.name}" equal',
                fix="give one of them another name",
            )


def _refuse(query: Query, rules: Dialect) -> None:
    """Refuse what never has an exact translation, outermost first."""
    for node in query.text.tree.walk(bfs=False):
        reason = rules.refused.get(type(node))
        if reason is not None:
            raise query.refusal(node, reason.why, reason.fix, called=reason.called)
        known = type(node) in rules.plain or type(node) in rules.rewrites
        if not known and not rules.has_call(node):
            raise query.no_rule_error(node)


def _rewrite_tree(query: Query, rules: Dialect) -> exp.Expr:
    """The tree with everything rewritten that means something else in Spark, innermost first."""
    tree: exp.Expr = query.text.tree
    for node in reversed(list(tree.walk(bfs=False))):
        rule = rules.rule_of(node)
        try:
            new = rule(node, query) if rule is not None else None
        except (IndexError, ValueError) as error:  # it has other operands than the function
            raise query.no_rule_error(node) from error
        if new is not None:
            query.kinds.carry(node, new)
            node.replace(new)
            tree = new if node is tree else tree
    for each in tree.find_all(exp.Lambda):  # in a function with one, Spark takes no subquery
        if each.parent is not None and each.parent.find(exp.Query):
            raise _subquery_in_the_way(query)
    parenthesize(tree)
    return tree


def _subquery_in_the_way(query: Query) -> InvalidDefinition:
    return InvalidDefinition(
        f"a subquery inside an expression cannot be translated from {query.dialect}",
        where=query.text.locate(),
        why="in Spark's SQL its value would be written many times, or into a function that takes "
        "no subquery",
        fix="join it in FROM, as in CROSS JOIN (SELECT avg(x) AS mean FROM t) AS q, and use q.mean",
    )


_BINDS: dict[type[exp.Expr], int] = {
    **dict.fromkeys((exp.Mul, exp.Div, exp.IntDiv, exp.Mod), 6),
    **dict.fromkeys((exp.Add, exp.Sub, exp.DPipe), 5),
    exp.BitwiseAnd: 4,
    exp.BitwiseXor: 3,
    exp.BitwiseOr: 2,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), 1),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), 1),
}


def parenthesize(tree: exp.Expr) -> None:
    """Put operands in parentheses that Spark would otherwise split.

    >>> tree = exp.DPipe(this=exp.column("a"), expression=exp.Add(this="b", expression="c"))
    >>> parenthesize(tree)
    >>> tree.sql()
    'a || (b + c)'
    """
    for node in list(tree.walk()):
        binds = _BINDS.get(type(node))
        if binds is not None:
            for name in ("this", "expression"):
                if _is_taken_apart(node.args[name], binds, right=name == "expression"):
                    node.set(name, exp.paren(node.args[name], copy=False))


def _is_taken_apart(operand: object, binds: int, *, right: bool) -> bool:
    inner = _BINDS.get(type(operand))  # type: ignore[arg-type]
    if inner is not None:
        return inner < binds or (right and inner == binds)
    quantified = isinstance(operand, exp.Any | exp.All)
    return isinstance(operand, exp.Predicate | exp.Connector | exp.Not) and not quantified


def expand_stars(tree: exp.Query, columns: Columns, rules: StarRules) -> None:
    """List the columns of stars that would have another order in Spark, in a query as parsed; stars
    over tables whose columns are not known stay."""
    scopes = Scopes(lambda table: list(columns.get(table_name(table), ())) or None, rules)
    expanded = dict[int, list[exp.Expr]]()
    selects = [each for each in tree.find_all(exp.Select) if joins_by_name(each)]
    for select in selects:
        for item in select.expressions:
            is_of_table = isinstance(item, exp.Column)
            if not item.is_star or not (is_of_table or not rules.keys_first):
                continue
            try:
                expanded[id(item)] = [_output(each) for each in scopes.expand(item, select)]
            except Refusal:
                continue  # Spark knows the columns, and the names are the same in any order
    for select in selects:
        items = [each for item in select.expressions for each in expanded.get(id(item), [item])]
        select.set("expressions", items)


def _output(column: FromColumn) -> exp.Expr:
    return column.value.copy() if column.table else exp.column(column.name, quoted=True)


class _Printer(StreamTables.Generator):
    """Leaves each WITH in its subquery, so that its names stay local."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()


def _print_sql(query: Query, tree: exp.Expr) -> str:
    options: dict[str, Any] = {"pretty": True, "comments": False}
    printer = _Printer(dialect=DIALECT, unsupported_level=ErrorLevel.RAISE, **options)
    try:
        return printer.generate(tree)
    except UnsupportedError as error:
        raise InvalidDefinition(
            f"the query cannot be translated from {query.dialect}",
            where=query.text.locate(),
            why=str(error),
            fix="write it in Spark SQL",
        ) from None
