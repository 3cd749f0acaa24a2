"""Text and the columns of its sources → normalized syntax tree.

After this module, every column is qualified by its table, every star is expanded, every expression
has its type if it can be inferred, and the tree contains only what the operators can maintain:
`refuse` has rejected the rest.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.schema import MappingSchema

from dagster_streamtables.compiler.analyze.from_relations import require_as_many
from dagster_streamtables.compiler.analyze.group_and_order_by import (
    cast_conditions,
    unify_group_keys,
)
from dagster_streamtables.compiler.analyze.lateral_views import expand_time_calls
from dagster_streamtables.compiler.analyze.normalize import normalize_tree
from dagster_streamtables.compiler.analyze.output_names import require_distinct, require_names
from dagster_streamtables.compiler.analyze.pivots import cast_pivot_values
from dagster_streamtables.compiler.analyze.refuse import refuse
from dagster_streamtables.compiler.analyze.resolve import resolve_names
from dagster_streamtables.compiler.analyze.storable_types import infer_types
from dagster_streamtables.compiler.analyze.validate import check
from dagster_streamtables.compiler.operators.sql_builders import WEIGHT
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, UNKNOWN, type_from
from dagster_streamtables.compiler.text.table_mentions import table_name, tables_in
from dagster_streamtables.errors import UnsupportedQuery

Columns = Mapping[str, str]
"""Column name → type, as Spark writes it (``bigint``, ``decimal(10,2)``)."""


@dataclass(frozen=True)
class BoundQuery:
    """A normalized query."""

    tree: exp.Query
    names: tuple[str, ...]
    """The output columns, in the user's case."""
    scans: Mapping[str, str]
    """A source's name in `tree` → its name in the text."""


def parse(text: Text, sources: Mapping[str, Columns]) -> BoundQuery:
    """The tree of a query over the columns of its sources.

    Raises:
        UnsupportedQuery: It contains something that cannot be maintained.
        InvalidDefinition: A column does not exist or is ambiguous, or an output has no name.
    """
    refuse(text)
    try:
        _require_sources(text, sources)
        tree, scans, names = bind(text, sources)
        check(tree)
        require_distinct(names, text)
        _require_no_weight(tree, text)
    except Refusal as refusal:
        raise refusal.in_text(text) from None
    return BoundQuery(tree, names, scans)


def bind(
    text: Text, sources: Mapping[str, Columns]
) -> tuple[exp.Query, dict[str, str], tuple[str, ...]]:
    """The tree, its scans, and its output names as the author spells them."""
    every = _types(sources)
    tree = normalize_tree(text.tree, every)
    scans = _flatten_table_names(tree, text, sources)
    schema = _Schema(
        {
            flat: {column: type_from(type_) for column, type_ in sources[name].items()}
            for flat, name in scans.items()
        },
        dialect=DIALECT,
    )
    scopes = Scopes(lambda table: list(sources[scans[table.name]]) if table.name in scans else None)
    resolve_names(tree, scopes, schema)
    names = tuple(scopes.outputs(tree))
    require_names(names, text, every)
    tree = normalize_identifiers(tree, dialect=DIALECT)
    unify_group_keys(tree)
    tree = infer_types(tree, schema)
    expand_time_calls(tree)
    cast_pivot_values(tree)
    cast_conditions(tree)
    assert isinstance(tree, exp.Query)
    return tree, scans, names


def _types(sources: Mapping[str, Columns]) -> dict[str, str]:
    """The types of all columns of all sources; empty if two columns of one name differ."""
    found: dict[str, str] = {}
    for name, kind in (each for columns in sources.values() for each in columns.items()):
        found[name] = _common(found.get(name, kind), kind)
    return found


def _common(one: str, other: str) -> str:
    """What is known of a column that has one of two types: whether it is an array or a map."""
    if one == other:
        return one
    kinds = {each.lower().partition("<")[0] for each in (one, other)}
    if kinds == {"array"}:
        return "array<void>"
    return "map<void,void>" if kinds == {"map"} else ""


class _Schema(MappingSchema):
    """A schema that takes names literally. By default sqlglot parses each name as SQL, and gets
    other columns, or none, if one begins with ``{``, ``$``, ``:`` or ``@``."""

    def _normalize_name(
        self,
        name: str | exp.Identifier,
        dialect: DialectType = None,
        is_table: bool = False,
        normalize: bool | None = None,
    ) -> str:
        return (name if isinstance(name, str) else name.name).lower()


def _require_sources(text: Text, sources: Mapping[str, Columns]) -> None:
    for table in text.tables():
        name = table_name(table)
        if name not in sources:
            near = difflib.get_close_matches(name, list(sources), n=3)
            raise Mistake(
                table,
                f'there is no table "{name}"',
                why="its columns are not known",
                fix=f"did you mean {' or '.join(near)}?"
                if near
                else "create it, or correct its name",
            )
    if not text.sources:
        raise UnsupportedQuery(
            "the query reads no table",
            where=text.locate(),
            why="its result never changes",
            fix="write its rows into a Delta table",
        )


def source_column_type(column: str, type_: str) -> exp.DataType:
    """The type of a column that the query reads; UNKNOWN if the source does not exist yet.

    Raises:
        UnsupportedQuery: Values of the type would not survive unchanged.
    """
    known = type_from(type_)
    if type_ == UNKNOWN:
        return known
    unknown = known.is_type(exp.DType.UNKNOWN, exp.DType.TIME)
    if unknown or "collate" in type_.lower().replace("collate utf8_binary", ""):
        raise UnsupportedQuery(
            f'the column "{column}" has the type {type_}',
            why="a change cannot contain values of this type yet",
            fix="leave the column out, or cast it to another type in the source",
        )
    return known


def _flatten_table_names(
    tree: exp.Query, text: Text, sources: Mapping[str, Columns]
) -> dict[str, str]:
    """Give each source a one-part name, so that names of one, two and three parts can be mixed."""
    flat = {name: f"source_{i}" for i, name in enumerate(text.sources)}
    for table in tables_in(tree):
        name = table_name(table)
        if name not in flat:
            raise Mistake(
                table,
                f'"{name}" cannot be read as a table',
                why="a word or a parenthesis before it is missing, or one too many",
                fix="correct the query",
            )
        alias = table.alias or table.name
        renamed = table.alias_column_names
        # With the position in the author's text, which a parsed name would not have.
        plain = exp.Table(this=exp.to_identifier(flat[name]))
        plain.this.meta.update(table.this.meta)
        if renamed:
            columns = list(sources[name])
            require_as_many(table, renamed, columns)
            pairs = zip(columns, renamed, strict=True)
            outputs = [
                exp.alias_(exp.column(old, quoted=True), new, quoted=True) for old, new in pairs
            ]
            named: exp.Expr = exp.select(*outputs).from_(plain).subquery(alias)
        else:
            named = exp.alias_(plain, alias, table=True, quoted=True)
        for clause in ("joins", "laterals"):  # of parentheses, the first table has them
            named.set(clause, table.args.get(clause))
        table.replace(named)
    return {f: name for name, f in flat.items()}


def _require_no_weight(tree: exp.Query, text: Text) -> None:
    """Reserve the name of the column that every change adds to those of its source."""
    for column in tree.find_all(exp.Column):
        if column.name.lower() == WEIGHT:
            written = (each for each in text.tree.find_all(exp.Column) if each.name == column.name)
            raise Refusal(
                next(written, text.tree),
                f'the query uses a column called "{column.name}"',
                why="while a change is computed, this column holds the weights of its rows",
                fix="rename the column in the source, leave it out, or choose mode FULL",
            )
