"""Stars that stand for columns inside of an expression, and for the fields of a struct.

    hash(*), to_json(struct(t.*))     hash(a, b), to_json(struct(t.a AS a, t.b AS b))
    s.*, of a column s                s.x AS x, s.y AS y
    s.* EXCEPT (y)                    s.x AS x

The qualifier knows only stars that stand for columns of a table among the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import takewhile

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import Schema

from dagster_streamtables.compiler.analyze.storable_types import annotated
from dagster_streamtables.compiler.scope.field_names import keep_case
from dagster_streamtables.compiler.scope.from_columns import Scopes, name_tables
from dagster_streamtables.compiler.text.aliases import own_aliases
from dagster_streamtables.compiler.text.column_names import repeated
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.spark import DIALECT


def outputs_alone(
    select: exp.Select, outputs: list[exp.Expr], schema: Schema
) -> list[exp.Expr] | None:
    """What a SELECT over the same FROM returns, each column with its table and its type.

    Args:
        select: It stays as it is.
        outputs: Stars, or expressions over the columns of its tables.
        schema: The columns of the tables in it.

    Returns:
        None if they are not known: it mentions a row of the query around it, or has an error.
    """
    apart = exp.Select()
    for clause in ("from_", "joins"):  # copies: a node has one parent
        apart.set(clause, _copied(select.args.get(clause)))
    views = takewhile(lambda view: not _holds(view, outputs), select.args.get("laterals") or [])
    apart.set("laterals", [each.copy() for each in views])
    apart.set("expressions", [each.copy() for each in outputs])
    apart.set("with_", definitions(select))
    try:
        found = annotated(
            qualify(apart, schema=schema, dialect=DIALECT, quote_identifiers=False), schema
        )
    except SqlglotError:
        return None
    return list(found.selects) if isinstance(found, exp.Select) else None


def _copied(clause: exp.Expr | list[exp.Expr] | None) -> exp.Expr | list[exp.Expr] | None:
    return (
        [each.copy() for each in clause] if isinstance(clause, list) else clause and clause.copy()
    )


def _holds(view: exp.Expr, outputs: list[exp.Expr]) -> bool:
    """Whether an output stands in a LATERAL VIEW, which sees what is before it."""
    return any(node is output for node in view.walk() for output in outputs)


def from_inside(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs of a tree, after those that they read."""
    # No recursion: a chain of a thousand ORs is as deep.
    around = [(node, _below(node))]
    while around:
        here, rest = around[-1]
        child = next(rest, None)
        if child is not None:
            around.append((child, _below(child)))
            continue
        around.pop()
        if isinstance(here, exp.Select):
            yield here


def _below(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes right below it, WITH before the rest."""
    clause = node.args.get("with_")
    below = list(node.iter_expressions())
    return iter(sorted(below, key=lambda each: each is not clause))


def spell_out_inner_stars(select: exp.Select, schema: Schema, scopes: Scopes) -> None:
    """
    Args:
        select: It is changed. What it reads is settled: no two columns have one name.
        schema: The columns of the tables in it.
        scopes: The same, as their tables and authors spell them.
    """
    stars = stars_in_expressions(select)
    if stars:
        name_tables(select)
    for star in stars:
        replace_star(star, _meant(select, star, schema, scopes))


def require_spelled_out(tree: exp.Query) -> None:
    """
    Raises:
        Refusal: A star stayed in an expression. It would have the weight of a row, too, and not
            the columns that nothing else reads.
    """
    for star in tree.find_all(exp.Star):
        node = star.parent if isinstance(star.parent, exp.Column) else star
        if not isinstance(node.parent, exp.Select) and not _counts_rows(node, _table_of(node)):
            raise _unknown(star)


def _table_of(node: exp.Expr) -> Set[str]:
    return {node.table.lower()} if isinstance(node, exp.Column) else set()


def stars_in_expressions(select: exp.Select) -> list[exp.Expr]:
    """The stars of a SELECT that the qualifier does not know: in expressions, and of a struct."""
    return list(_stars(select))


def _stars(select: exp.Select) -> Iterator[exp.Expr]:
    tables = {alias.lower() for alias in own_aliases(select)}
    for star in select.find_all(exp.Star):
        node = star.parent if isinstance(star.parent, exp.Column) else star
        around = node.parent
        if node.find_ancestor(exp.Select) is not select or _counts_rows(node, tables):
            continue
        if _is_of_struct(node, tables) or not isinstance(around, exp.Select):
            yield node


def _counts_rows(node: exp.Expr, tables: Set[str]) -> bool:
    """Whether it is the star of COUNT(*).

    COUNT(s.*), COUNT(* EXCEPT (a)) and COUNT(*, a) count rows in which none of the columns is NULL.
    """
    star = node.this if isinstance(node, exp.Column) else node
    counts = isinstance(node.parent, exp.Count) and not node.parent.expressions
    return counts and not star.args.get("except_") and not _is_of_struct(node, tables)


def _is_of_struct(star: exp.Expr, tables: Set[str]) -> bool:
    return isinstance(star, exp.Column) and (
        star.table.lower() not in tables or bool(star.args.get("db"))
    )


def _meant(
    select: exp.Select, star: exp.Expr, schema: Schema, scopes: Scopes
) -> list[exp.Expr] | None:
    """What a star stands for: outputs, fields of a struct, or arguments."""
    tables = {alias.lower() for alias in own_aliases(select)}
    if isinstance(star, exp.Column) and _is_of_struct(star, tables):
        return _fields(select, star, schema)
    try:
        return [each.as_output() for each in scopes.expand(star, select)]
    except Refusal:  # only the qualifier knows the columns of some functions
        return outputs_alone(select, [star], schema)


def _argument(output: exp.Expr, around: exp.Expr) -> exp.Expr:
    if isinstance(around, exp.Select):
        return output
    return _field(output) if isinstance(around, exp.Struct) else output.unalias()


def _field(column: exp.Expr) -> exp.Expr:
    name = exp.to_identifier(repeated(column.alias_or_name), quoted=True)
    keep_case(name)
    return exp.PropertyEQ(this=name, expression=column.unalias())


def _fields(select: exp.Select, star: exp.Column, schema: Schema) -> list[exp.Expr] | None:
    table, column = star.args.get("db"), star.args["table"]
    struct = exp.Column(this=column.copy(), table=table and table.copy())
    found = outputs_alone(select, [struct], schema)
    kind = found[0].type if found else None
    if kind is None or not kind.is_type(exp.DataType.Type.STRUCT):
        return None
    without = {each.name.lower() for each in star.this.args.get("except_") or []}
    return [
        exp.alias_(exp.Dot(this=struct.copy(), expression=each.this.copy()), each.name, quoted=True)
        for each in kind.expressions
        if each.name.lower() not in without
    ]


def replace_star(star: exp.Expr, outputs: list[exp.Expr] | None) -> None:
    """Put outputs in the place of a star, as the SELECT list or the call around it takes them.

    Raises:
        Refusal: They are not known, or the call takes no such number of arguments.
    """
    around, at = star.parent, star.index
    if outputs is None or around is None:
        raise _unknown(star)
    copies = [_argument(each, around).copy() for each in outputs]
    if at is not None and star.arg_key is not None:
        listed = around.args[star.arg_key]
        listed[at : at + 1] = copies
        around.set(star.arg_key, listed)
    elif isinstance(around, exp.Func) and around.is_var_len_args and star.arg_key == "this":
        around.set("this", copies[0])
        around.set("expressions", [*copies[1:], *around.expressions])
    elif len(copies) == 1:
        star.replace(copies[0])
    else:
        raise _unknown(star)


def _unknown(star: exp.Expr) -> Refusal:
    return Refusal(
        star,
        "* inside of an expression is not supported here",
        why="the columns that it stands for are known only in a query that mentions no row of "
        "the query around it, and only functions of any number of arguments take them",
        fix="list the columns, or choose mode FULL",
    )


def definitions(select: exp.Select) -> exp.With | None:
    """What WITH defines for it, in its own query and in those around it."""
    found = dict[str, exp.CTE]()
    around: exp.Expr | None = select
    inside: exp.Expr | None = None
    while around is not None:
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            before = list[exp.CTE]()
            for cte in clause.expressions:
                if cte is inside:
                    break
                before.append(cte)
            found = {each.alias.lower(): each.copy() for each in before} | found
        inside = around if isinstance(around, exp.CTE) else inside
        around = around.parent
    return exp.With(expressions=list(found.values())) if found else None
