"""The names of the output columns: given by the author or by Spark, distinct, and not reserved.

Spark names some outputs whose author gives no name:

    CAST(o.amount AS BIGINT), (amount)   amount
    1, -1, TRUE, 'new'                   1, -1, true, new
    tags[0], tags[id], prices['eur']     tags[0], tags[id], prices[eur]
    window(happened, '10 minutes')       window
    explode(tags), posexplode(tags)      col; pos and col
    explode(prices)                      key and value

It names any other expression by its text: ``count(1)``, ``(amount + 1)``. Such a name has
characters that no column of a Delta table may have, in mode FULL either.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators.sql_builders import is_reserved_name
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.group_by import name_of_call
from dagster_streamtables.compiler.text.places import Mistake, place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import type_from
from dagster_streamtables.compiler.text.table_mentions import first_select, own_aliases
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, UnsupportedQuery

_UNSTORABLE = re.compile(r"[ ,;{}()\n\t=]+")
"""What Delta takes in the name of no column, unless the table maps names to others."""
OF_FEED = frozenset(("_change_type", "_commit_version", "_commit_timestamp"))
"""The columns that Delta adds in the feed of a table, which its own may not be called."""
_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d+)?")


def is_storable(name: str, *, field: bool = False) -> bool:
    """Whether a column of a Delta table with a feed, or a field of a struct, may have the name.

    >>> is_storable("net-total"), is_storable("net total"), is_storable("_change_type")
    (True, False, False)
    """
    return not _UNSTORABLE.search(name) and (field or name.lower() not in OF_FEED)


def storable(name: str) -> str:
    """A name like another one that a column of a Delta table may have.

    >>> storable("31-60 days (net)"), storable("_change_type")
    ('31-60_days_net', 'change_type')
    """
    return _UNSTORABLE.sub("_", name).strip("_") or "column"


def spark_name(
    output: exp.Expr, aliases: Collection[str], columns: Mapping[str, str]
) -> str | None:
    """The name of an output as parsed, without an alias; None if Delta would not take Spark's.

    Args:
        output: As parsed.
        aliases: The names that can qualify a column, in lower case.
        columns: All columns of all sources, and their types.
    """
    output = output.unnest()
    name = _name_of(output.this if isinstance(output, exp.Cast) else output, aliases)
    if name is None and isinstance(output, exp.Bracket):
        name = _element(output, aliases, columns)
    if name is None:
        call = name_of_call(output)
        name = call if call in spark_functions.TIME_WINDOWS else constant_name(output)
    return name if name and is_storable(name) else None


def _name_of(value: exp.Expr, aliases: Collection[str]) -> str | None:
    """The name of a column; None for a field of a struct, which Spark calls by its whole path."""
    value = value.unnest()
    if not isinstance(value, exp.Column) or (value.table and value.table.lower() not in aliases):
        return None
    return value.name


def constant_name(value: exp.Expr) -> str | None:
    """The name of a constant; None for a number that Spark prints otherwise, and other values."""
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        name = constant_name(value.this)
        return None if value.this.is_string or name is None else f"-{name}"
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    if not isinstance(value, exp.Literal):
        return None
    return value.name if value.is_string or _NUMBER.fullmatch(value.name) else None


def _element(
    output: exp.Bracket, aliases: Collection[str], columns: Mapping[str, str]
) -> str | None:
    """``tags[0]``; a string also selects the field of a struct, whose name has no brackets."""
    name = _name_of(output.this, aliases)
    [*index] = output.expressions
    if name is None or len(index) != 1:
        return None
    if index[0].is_string and not _is_map(output.this, _maps(columns)):
        return None
    inside = _name_of(index[0], aliases) or constant_name(index[0])
    return None if inside is None else f"{name}[{inside}]"


def _maps(columns: Mapping[str, str]) -> set[str]:
    return {name.lower() for name, kind in columns.items() if kind.upper().startswith("MAP<")}


def columns_of_call(call: exp.Expr, columns: Mapping[str, str]) -> list[str]:
    """The names that Spark gives the columns of a generator function; empty if unknown."""
    function = name_of_call(call).removesuffix("_outer")
    if f"{function}_outer" in spark_functions.VARIANT_TABLES:
        return ["pos", "key", "value"]
    if function == "range":
        return ["id"]
    own = [] if isinstance(call, exp.Anonymous) else [call.this]
    match function, [*own, *call.expressions]:
        case "explode" | "posexplode", [rows, *_] if _source_type(rows, columns) != "":
            place = ["pos"] if function == "posexplode" else []
            is_map = _is_map(rows, _maps(columns))
            return [*place, *(["key", "value"] if is_map else ["col"])]
        case "stack", [exp.Literal() as rows, *values]:
            return [f"col{each}" for each in range(-(-len(values) // int(rows.name)))]
        case "json_tuple", [_, *fields]:
            return [f"c{each}" for each in range(len(fields))]
        case "inline", [rows, *_]:
            return _fields(rows, columns)
        case _:
            return []


def _fields(rows: exp.Expr, columns: Mapping[str, str]) -> list[str]:
    """The fields of the structs in an array; empty if unknown."""
    if isinstance(rows, exp.Array):
        structs = [_type_of(each, columns) or each for each in rows.expressions]
    else:
        kind = _type_of(rows, columns)
        structs = kind.expressions if kind is not None and kind.is_type("array") else []
    known = [each for each in structs[:1] if isinstance(each, exp.Struct | exp.DataType)]
    return [field.name for struct in known for field in struct.expressions]


def _type_of(value: exp.Expr, columns: Mapping[str, str]) -> exp.DataType | None:
    """The type of a column of a source; None of any other value, and if it is unknown."""
    kind = _source_type(value, columns)
    return type_from(kind) if kind and _is_of_source(value) else None


def _is_of_source(column: exp.Expr) -> bool:
    """Whether it cannot be a column of that name that the query itself makes."""
    select = column.find_ancestor(exp.Select)
    if select is None or select.args.get("from_") is None:
        return False
    joined = [join.this for join in select.args.get("joins") or []]
    relations = [select.args["from_"].this, *joined]
    known = all(isinstance(each, exp.Table | exp.Lateral) for each in relations)
    tables = [each for each in relations if isinstance(each.this, exp.Identifier)]
    made = {each.alias.lower() for each in column.root().find_all(exp.CTE)}
    named = {each.name.lower() for a in select.find_all(exp.TableAlias) for each in a.columns}
    mine = not any(each.name.lower() in made for each in tables)
    return known and bool(tables) and mine and column.name.lower() not in named


def _source_type(value: exp.Expr, columns: Mapping[str, str]) -> str | None:
    """The type of a column of a source; empty where sources differ."""
    if not isinstance(value, exp.Column):
        return None
    found = {kind for name, kind in columns.items() if name.lower() == value.name.lower()}
    return found.pop() if len(found) == 1 else "" if found else None


def _is_map(value: exp.Expr, maps: Collection[str]) -> bool:
    if isinstance(value, exp.Column):
        return value.name.lower() in maps
    return name_of_call(value) in spark_functions.MAPS


_PLACEHOLDER = re.compile(r"_col_\d+")
"""The names that the resolver gives to outputs without one."""


def require_names(names: tuple[str, ...], text: Text, columns: Mapping[str, str]) -> None:
    """Require an output, and a name of each.

    Args:
        names: The names of the outputs.
        text: The query.
        columns: All columns of all sources, and their types.
    """
    if not names:
        raise InvalidDefinition(
            "the query returns no column",
            where=text.locate(),
            why="a Delta table has at least one",
            fix="leave one of the columns that EXCEPT or DROP leaves out",
        )
    for number, name in enumerate(names, 1):
        if _PLACEHOLDER.fullmatch(name) and name not in (columns.keys() | _author_names(text)):
            raise Mistake(
                _first_nameless_output(text, columns),
                f"output column {number} has no name",
                why="Spark would name it by the text of the expression, which has characters that "
                "no column of a Delta table may have",
                fix="give it one with AS",
            )


def _author_names(text: Text) -> set[str]:
    """The names in the text that an output can have from its author."""
    return {
        each.name.lower()
        for each in text.tree.find_all(exp.Identifier)
        if (type(each.parent), each.arg_key) in _NAMES
    }


_NAMES = {(exp.Alias, "alias"), (exp.TableAlias, "columns"), (exp.Column, "this")}


def _first_nameless_output(text: Text, columns: Mapping[str, str]) -> exp.Expr:
    """The outermost output that has no name; the whole query, if all have one."""
    for output in (each for one in text.tree.find_all(exp.Select) for each in one.selects):
        if isinstance(output, exp.Alias | exp.Column | exp.Dot):
            named = output.is_star or output.alias_or_name
        else:
            named = isinstance(output, exp.Star | exp.Aliases) or (
                spark_name(output, text.aliases, columns) or columns_of_call(output, columns)
            )
        if not named:
            return output
    return text.tree


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
        f'a stream table cannot have a column called "{name}"',
        why="Delta calls a column of its feed of changes so"
        if name.lower() in OF_FEED
        else "Delta allows no space, comma, semicolon, brace, parenthesis, equals sign, tab or "
        "line break in the name of a column, or of a field of a struct",
        fix=f"rename it, as in {rewrite}",
    )


def _to_tell_apart(name: str, text: Text) -> str:
    """How to tell two columns of a name apart."""
    select = first_select(text.tree)
    assert isinstance(select, exp.Select)
    tables = list(own_aliases(select))
    if not any(each.is_star for each in select.selects) or len(tables) < 2:
        return "give each its own name with AS"
    *others, last = tables
    stars = ", ".join(f"{each}.*" for each in others)
    return (
        f"join by USING ({name}), which returns it once, or write {stars}, {last}.* EXCEPT ({name})"
    )


def place_of_output(name: str, text: Text) -> QueryPosition | str:
    """The position of the last output of that name, or of the SELECT if a star yields it."""
    select = first_select(text.tree)
    assert isinstance(select, exp.Select)
    named = [each for each in select.selects if each.alias_or_name.lower() == name.lower()]
    return place(named[-1] if named else select.selects[-1], text)
