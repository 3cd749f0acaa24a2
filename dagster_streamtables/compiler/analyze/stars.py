"""Stars: the columns, or the fields of a struct, that they stand for.

*, t.*, * EXCEPT (a)              o.a AS a, o.b AS b …
hash(*), to_json(struct(t.*))     hash(a, b), to_json(struct(t.a AS a, t.b AS b))
s.*, of a column s                s.x AS x, s.y AS y
s.* EXCEPT (y)                    s.x AS x
* EXCEPT (s.y)                    named_struct('x', s.x) AS s: a struct, even where s is NULL
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.schema import Schema

from dagster_streamtables.compiler.analyze.normalize import keep_case
from dagster_streamtables.compiler.analyze.storable_types import infer_types
from dagster_streamtables.compiler.scope.from_columns import FromColumn
from dagster_streamtables.compiler.scope.mentions import among, levels_around
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.column_names import original_name
from dagster_streamtables.compiler.text.pipes import keeps_tables
from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.table_mentions import definitions_before, own_aliases


def expand_stars(select: exp.Select, scopes: Scopes, schema: Schema) -> None:
    """Write the columns of stars into a SELECT whose FROM is resolved.

    Raises:
        Refusal: The columns of a star are not known.
    """
    for star in list(_stars(select, scopes)):
        _replace(star, _expand_star(select, star, scopes, schema))


def _stars(select: exp.Select, scopes: Scopes) -> Iterator[exp.Expr]:
    """The stars of a SELECT that stand for columns; COUNT(*) counts rows."""
    tables = {*map(str.lower, own_aliases(select)), *scopes.columns(select).tables}
    for star in select.find_all(exp.Star):
        node = star.parent if isinstance(star.parent, exp.Column) else star
        if node.find_ancestor(exp.Select) is select and not _counts_rows(node, tables):
            yield node


def _expand_star(
    select: exp.Select, star: exp.Expr, scopes: Scopes, schema: Schema
) -> list[exp.Expr] | None:
    """What a star stands for: outputs, fields of a struct, or arguments."""
    if isinstance(star, exp.Star):
        _require_named_columns(scopes.columns(select).unknown, star)
        columns = scopes.expand(star, select)
        return [_output(each, star, select, schema) for each in columns]
    assert isinstance(star, exp.Column)
    levels = [(select, scopes.columns(select)), *levels_around(select, scopes)]
    alias = star.table.lower()
    if not star.args.get("db"):
        for around, columns in levels:
            is_own = alias in map(str.lower, own_aliases(around))
            if not is_own and alias not in columns.tables:
                continue
            if not is_own and not _is_whole(alias, around, scopes):
                raise _unknown(star)
            unknown = [each for each in columns.unknown if each.alias.lower() == alias]
            _require_named_columns(unknown, star)
            # Not of all columns: those of a LATERAL get their final names after this star.
            found = scopes.expand(star, around, columns)
            return [_output(each, star.this, around, schema) for each in found]
    table, column = star.args.get("db"), star.args["table"]
    struct = exp.Column(this=column.copy(), table=table and table.copy())
    found = (among(columns, struct) for _, columns in levels)
    value = next((each for each in found if each is not None), None)
    return _fields(value, star, select, schema) if value is not None else None


def _is_whole(table: str, select: exp.Select, scopes: Scopes) -> bool:
    """Whether the steps of a pipe before a SELECT keep all columns that ``t.*`` has in Spark.

    They lose those that a join by names merged away, and a set operation renames or casts some.
    """
    while (clause := select.args.get("from_")) is not None and keeps_tables(clause.this):
        select = clause.this.this
        if not isinstance(select, exp.Select):
            return False
        if any(each.table == table for each in scopes.columns(select).hidden):
            return False
    return True


def _output(column: FromColumn, star: exp.Expr, select: exp.Select, schema: Schema) -> exp.Expr:
    """A column that a star stands for; with AS, if the step SET gives it a value, or if a field of
    it is left out."""
    value = column.value
    if column.without:
        kind = _type_of(value, select, schema)
        value = _struct(_fields_without(value, column.without, star, kind), star)
    elif not any(value is each.this for each in star.args.get("replace") or []):
        return column.as_output()
    return exp.alias_(value.copy(), column.name, quoted=True)


def _fields_without(
    value: exp.Expr, paths: Sequence[Sequence[str]], star: exp.Expr, kind: exp.DataType | None
) -> list[tuple[str, exp.Expr]]:
    """The fields of a struct with their values, except at the ends of paths."""
    fields = kind.expressions if kind is not None and kind.is_type(exp.DType.STRUCT) else []
    lost = {path[0] for path in paths} - {each.name.lower() for each in fields}
    if lost:
        raise Mistake(
            star,
            f"a star EXCEPT the field {min(lost)}, which does not exist",
            why="it leaves out fields of structs whose types are known",
            fix="list the columns, with named_struct(…) for a struct without the field",
        )
    found = list[tuple[str, exp.Expr]]()
    for each in fields:
        inner = [path[1:] for path in paths if path[0] == each.name.lower()]
        field = exp.Dot(this=value.copy(), expression=each.this.copy())
        if not inner:
            found.append((each.name, field))
        elif all(inner):
            found.append(
                (each.name, _struct(_fields_without(field, inner, star, each.args["kind"]), star))
            )
    return found


def _struct(fields: Sequence[tuple[str, exp.Expr]], star: exp.Expr) -> exp.Expr:
    if not fields:
        raise Refusal(
            star,
            "a star EXCEPT all fields of a struct",
            why="Delta stores no struct without fields",
            fix="leave out the struct",
        )
    named = [exp.alias_(value, name, quoted=True) for name, value in fields]
    return exp.Struct(expressions=[_field(each) for each in named])


def _require_named_columns(functions: Sequence[exp.Expr], star: exp.Expr) -> None:
    if functions:
        raise Refusal(
            star,
            "* over a table function whose columns have no names",
            why="only Spark knows the names of its columns",
            fix="name them, as in LATERAL VIEW inline(x) t AS a, b, or list the columns",
        )


def _fields(
    value: exp.Expr, star: exp.Column, select: exp.Select, schema: Schema
) -> list[exp.Expr] | None:
    kind = _type_of(value, select, schema)
    if kind is None or not kind.is_type(exp.DType.STRUCT):
        return None
    names = star.this.args.get("except_") or []
    paths = [[part.name.lower() for part in getattr(each, "parts", [each])] for each in names]
    kept = _fields_without(value, paths, star, kind)
    return [exp.alias_(field, name, quoted=True) for name, field in kept]


def _type_of(value: exp.Expr, select: exp.Select, schema: Schema) -> exp.DataType | None:
    """The type of an expression over the columns of a FROM clause."""
    apart = exp.Select(expressions=[exp.alias_(value.copy(), "st_value")])
    for clause in ("from_", "joins", "laterals"):  # copies: a node has one parent
        found = select.args.get(clause)
        copies = [each.copy() for each in found] if isinstance(found, list) else found
        apart.set(clause, copies.copy() if isinstance(copies, exp.Expr) else copies)
    if definitions := definitions_before(select):
        apart.set("with_", exp.With(expressions=[each.copy() for each in definitions]))
    found = infer_types(normalize_identifiers(apart, dialect=DIALECT), schema)
    return found.expressions[0].unalias().type


def require_no_stars(tree: exp.Query) -> None:
    """Refuse a star that stayed in an expression. Its columns would include the weight of a row,
    and miss columns that nothing else reads."""
    for star in tree.find_all(exp.Star):
        node = star.parent if isinstance(star.parent, exp.Column) else star
        if not isinstance(node.parent, exp.Select) and not _counts_rows(
            node, {node.text("table").lower()}
        ):
            raise _unknown(star)


def _counts_rows(node: exp.Expr, tables: Set[str]) -> bool:
    """Whether it is the star of COUNT(*).

    COUNT(s.*), COUNT(* EXCEPT (a)) and COUNT(*, a) count rows in which none of the columns is NULL.
    """
    star = node.this if isinstance(node, exp.Column) else node
    counts = isinstance(node.parent, exp.Count) and not node.parent.expressions
    of_table = node.text("table").lower() in tables and not node.args.get("db")
    is_of_struct = isinstance(node, exp.Column) and not of_table
    return counts and not star.args.get("except_") and not is_of_struct


def _field(column: exp.Expr) -> exp.Expr:
    name = exp.to_identifier(original_name(column.alias_or_name), quoted=True)
    keep_case(name)
    return exp.PropertyEQ(this=name, expression=column.unalias())


def _replace(star: exp.Expr, outputs: list[exp.Expr] | None) -> None:
    """Put outputs into the place of a star, as the SELECT list or the call around it takes them."""
    around, at = star.parent, star.index
    if outputs is None or around is None:
        raise _unknown(star)
    if isinstance(around, exp.Select):
        copies = [each.copy() for each in outputs]
    elif isinstance(around, exp.Struct):
        copies = [_field(each).copy() for each in outputs]
    else:
        copies = [each.unalias().copy() for each in outputs]
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
        "* inside an expression is not supported here",
        why="the columns that it stands for are known only in a query that mentions no row of "
        "the query around it, and only functions of any number of arguments take them",
        fix="list the columns, or choose mode FULL",
    )
