"""The fields of structs keep the names and the letter case that Spark gives them.

    struct(Id, n + 1, s.x)      STRUCT(Id AS `Id`, n + 1 AS `col2`, s.x AS `x`)
    (Id, 2 AS y)                STRUCT(Id AS `Id`, 2 AS `y`)
    CAST(p AS STRUCT<Id: INT>)  CAST(p AS STRUCT<`Id`: INT>)
    arrays_zip(a, array(1))     TRANSFORM(ARRAYS_ZIP(COALESCE(a), ARRAY(1)),
                                    z -> STRUCT(z.`0` AS `a`, z.`1` AS `1`))

The qualifier writes names in lower case, and columns get other names in operators; ``to_json``
would show both.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

_ITEM = "st_zipped"
_AROUND_VALUES = (exp.Alias, exp.Select, exp.PropertyEQ, exp.Func, exp.Lambda)


def keep_field_names(tree: exp.Query) -> None:
    """
    Args:
        tree: It is changed. Its names are as the author spells them.
    """
    for zipped in list(tree.find_all(exp.ArraysZip)):
        if any(map(_own_name, zipped.expressions)):
            zipped.replace(_name_zip_fields(zipped))
    for row in list(_rows(tree)):
        row.replace(_struct(row.expressions))
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


def _struct(values: list[exp.Expr]) -> exp.Struct:
    fields = [_field(each, f"col{place}") for place, each in enumerate(values, 1)]
    return exp.Struct(expressions=fields)


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
