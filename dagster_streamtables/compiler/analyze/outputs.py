"""The names of the output columns: given by the author or by Spark, distinct, and not reserved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators.columns import is_reserved_name
from dagster_streamtables.compiler.text.output_names import (
    OF_FEED,
    columns_of_call,
    is_storable,
    spark_name,
    storable,
)
from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.tables import own_aliases
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, UnsupportedQuery

_INVENTED = re.compile(r"_col_\d+")
_NAMED = {(exp.Alias, "alias"), (exp.TableAlias, "columns")}


def names_of(output: exp.Expr, text: Text, columns: Mapping[str, str]) -> list[str]:
    """The names of the columns of one output; empty if it has none that Delta would take."""
    if isinstance(output, exp.Alias | exp.Column | exp.Dot):
        return [output.alias_or_name] if output.alias_or_name else []
    name = spark_name(output, text.aliases, columns)
    return columns_of_call(output, columns) if name is None else [name]


def is_placeholder_name(name: str) -> bool:
    """Whether sqlglot made a name for an output that has none."""
    return _INVENTED.fullmatch(name) is not None


def author_spellings(text: Text) -> dict[str, str]:
    """Names of outputs in lower case → as the author spells them, in the outermost query first."""
    found: dict[str, str] = {}
    for each in text.tree.find_all(exp.Identifier):
        parent = each.parent
        chosen = isinstance(parent, exp.Column) and isinstance(parent.parent, exp.Select)
        if (chosen and each.arg_key == "this") or (type(parent), each.arg_key) in _NAMED:
            found.setdefault(each.name.lower(), each.name)
    return found


def first_nameless_output(text: Text, columns: Mapping[str, str]) -> exp.Expr:
    """The outermost output that has no name; the whole query, if all have one."""
    for select in text.tree.find_all(exp.Select):
        for output in select.selects:
            named = output.is_star or isinstance(output, exp.Aliases)
            if not named and not names_of(output, text, columns):
                return output
    return text.tree


def missing_name(text: Text, output: exp.Expr, number: int) -> InvalidDefinition:
    return InvalidDefinition(
        f"output column {number} has no name",
        where=place(output, text),
        why="Spark would name it by the text of the expression, which has characters that no "
        "column of a Delta table may have",
        fix="give it one with AS",
    )


def require_distinct(names: tuple[str, ...], text: Text) -> None:
    """
    Raises:
        InvalidDefinition: Two names are the same, ignoring case.
        UnsupportedQuery: One is reserved for the state of a table.
    """
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise InvalidDefinition(
                f'two output columns are called "{name}"',
                where=place_of_output(name, text),
                why="column names must be unique, ignoring case",
                fix=_to_tell_apart(name, text),
            )
        if is_reserved_name(name):
            raise UnsupportedQuery(
                f'an output column is called "{name}"',
                where=place_of_output(name, text),
                why="names with this prefix are reserved for the table's own state",
                fix="give it another name with AS",
            )


def require_storable(names: Iterable[str], text: Text) -> None:
    """
    Raises:
        InvalidDefinition: A column of a stored table may not have one of the names.
    """
    for name in names:
        if not is_storable(name):
            raise unstorable(name).with_parts(where=place_of_output(name, text))


def unstorable(name: str, *, field: bool = False) -> InvalidDefinition:
    """The error for the name of a column, or of a field of a struct.

    Delta-rs would write such a table, and Spark, which writes what is large, would then fail.
    """
    other = storable(name)
    rewrite = f"named_struct('{other}', …)" if field else f"AS `{other}`"
    return InvalidDefinition(
        f'a stream table can have no column called "{name}"',
        why="Delta calls a column of its feed of changes so"
        if name.lower() in OF_FEED
        else "Delta allows no space, comma, semicolon, brace, parenthesis, equals sign, tab or "
        "line break in the name of a column, or of a field of a struct",
        fix=f"rename it, as in {rewrite}",
    )


def _to_tell_apart(name: str, text: Text) -> str:
    """What to write in place of two columns of a name; of a star over a join, two ways."""
    select = _first_select(text)
    tables = list(own_aliases(select))
    if not any(each.is_star for each in select.selects) or len(tables) < 2:
        return "give each its own name with AS"
    *others, last = tables
    stars = ", ".join(f"{each}.*" for each in others)
    return (
        f"join by USING ({name}), which returns it once, or write {stars}, {last}.* EXCEPT ({name})"
    )


def _first_select(text: Text) -> exp.Select:
    select = text.tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    assert isinstance(select, exp.Select)
    return select


def place_of_output(name: str, text: Text) -> QueryPosition | str:
    """The position of the last output of that name, or of the SELECT if a star yields it."""
    select = _first_select(text)
    named = [each for each in select.selects if each.alias_or_name.lower() == name.lower()]
    return place(named[-1] if named else select.selects[-1], text)
