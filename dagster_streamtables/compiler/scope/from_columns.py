"""The columns of a FROM clause, the meaning of a name or a star among them, and its errors.

The columns that a join by names merged away are hidden: only ``b.k`` and ``b.*`` find them, ``*``
does not. The rules are those of `UnresolvedStarBase.expand` in Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT


@dataclass(frozen=True)
class StarRules:
    """In which order stars have the columns of a join by names."""

    keys_first: bool = True
    """Of ``*``: what is merged comes first, and not where the left side has it."""
    hidden_first: bool = True
    """Of ``t.*``: what was merged away comes first, and not where the table has it."""


SPARK = StarRules()
POSTGRES = StarRules(hidden_first=False)
DUCKDB = StarRules(keys_first=False, hidden_first=False)
RULES: Mapping[str, StarRules] = {"postgres": POSTGRES, "duckdb": DUCKDB}
"""By the name of a dialect."""


@dataclass(frozen=True)
class FromColumn:
    name: str
    """As `*` shows it."""
    table: str
    """The alias that qualifies it, in lower case; empty if none does."""
    value: exp.Expr
    """An expression over the columns of the tables in FROM."""
    place: int = 0
    """Its place in the table."""
    without: tuple[Sequence[str], ...] = ()
    """The fields, in lower case, to those in it that a star leaves out."""

    def as_output(self) -> exp.Expr:
        """The column among the outputs of a SELECT."""
        return implicit_output(self.value.copy(), self.name)

    @property
    def names(self) -> set[str]:
        """Those that a mention may call it, in lower case.

        One of several outputs of a name has another in the query below.
        """
        return {self.name.lower(), self.value.name.lower()}

    def has_name(self, name: str, table: str = "") -> bool:
        return name.lower() in self.names and table.lower() in ("", self.table)


def implicit_output(value: exp.Expr, name: str | exp.Identifier) -> exp.Alias:
    """An output to which its author gives no name with AS."""
    output = exp.Alias(this=value, alias=exp.to_identifier(name))
    output.meta[_UNNAMED] = True
    return output


def has_implicit_name(output: exp.Expr) -> bool:
    return bool(output.meta.get(_UNNAMED))


def rename(output: exp.Expr, name: exp.Expr) -> None:
    """Name an output as an alias with columns does, which makes another column of it."""
    output.set("alias", name.copy())
    output.meta.pop(_UNNAMED, None)


_UNNAMED = "st_unnamed"


@dataclass(frozen=True)
class FromColumns:
    visible: tuple[FromColumn, ...] = ()
    hidden: tuple[FromColumn, ...] = ()
    unknown: tuple[exp.Expr, ...] = ()
    """The functions whose columns only Spark knows."""

    def find(self, name: str, table: str = "") -> list[FromColumn]:
        """The columns that a name may mean: it is ambiguous if there are several."""
        named = self._by_name.get(name.lower(), ())
        return distinct_columns(each for each in named if table.lower() in ("", each.table))

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[FromColumn]]:
        found = dict[str, list[FromColumn]]()
        for each in self.visible:
            for name in each.names:
                found.setdefault(name, []).append(each)
        return found

    def at(self, number: int, mention: exp.Expr) -> FromColumn:
        """The column with a number, which a key of AGGREGATE is."""
        self.require_known_columns()
        if not 0 < number <= len(self.visible):
            raise Mistake(
                mention,
                f"there is no column {number} before AGGREGATE",
                why=f"in GROUP BY of AGGREGATE, a number counts the {len(self.visible)} columns "
                "before it",
                fix="name the column",
            )
        return self.visible[number - 1]

    def table_of(self, output: exp.Expr) -> str:
        """The table of the column that an output is; empty if it is another value."""
        value = output if isinstance(output, exp.Column) else output.unalias()
        renamed = value is not output and not has_implicit_name(output)
        if renamed or not isinstance(value, exp.Column):
            return ""
        found = self.with_value(value) or next(iter(self.find(value.name, value.table)), None)
        return found.table if found is not None else ""

    def with_value(self, value: exp.Expr) -> FromColumn | None:
        """The column, visible or hidden, that an expression over the tables in FROM is."""
        return self._by_value.get(value)

    @cached_property
    def _by_value(self) -> Mapping[exp.Expr, FromColumn]:
        return {each.value: each for each in reversed((*self.visible, *self.hidden))}

    def find_hidden_columns(self, name: str, table: str) -> list[FromColumn]:
        """The merged columns that a qualified name may mean."""
        return [each for each in self.hidden if each.has_name(name, table)]

    def star(self, table: str, rules: StarRules) -> list[FromColumn]:
        """The columns of ``table.*``, or of ``*`` if the table is empty."""
        if not table:
            return list(self.visible)
        found = [each for each in (*self.hidden, *self.visible) if each.table == table.lower()]
        return found if rules.hidden_first else sorted(found, key=lambda each: each.place)

    @property
    def tables(self) -> set[str]:
        """The aliases that qualify a column, in lower case."""
        return {each.table for each in (*self.visible, *self.hidden) if each.table}

    @property
    def tables_and_names(self) -> list[tuple[str, str]]:
        """The table and the name of each that a mention may mean."""
        return [(each.table, each.name) for each in self.visible]

    def beside(self, other: FromColumns) -> FromColumns:
        return FromColumns(
            self.visible + other.visible,
            self.hidden + other.hidden,
            self.unknown + other.unknown,
        )

    def require_known_columns(self) -> None:
        """
        Raises:
            Refusal: The columns of a function are not known.
        """
        for each in self.unknown:
            raise unknown_columns(each)


def distinct_columns(columns: Iterable[FromColumn]) -> list[FromColumn]:
    """The columns, each column of a query below once."""
    return list({each.value: each for each in columns}.values())


def unknown_columns(node: exp.Expr) -> Refusal:
    return Refusal(
        node,
        "a join by column names, one side of which has unknown columns",
        why="only Spark knows them, and USING, NATURAL and * depend on all columns",
        fix="name the columns, as in f(x) AS t(a, b), or match them with ON and list the outputs",
    )


def bound_column(name: str, table: exp.Identifier | None) -> exp.Column:
    column = exp.column(exp.to_identifier(name, quoted=True), table=table)
    column.meta[_RESOLVED] = True
    return column


def is_bound(column: exp.Column) -> bool:
    """Whether it comes from `FromColumns`, and has the alias of its table."""
    return bool(column.meta.get(_RESOLVED))


_RESOLVED = "st_resolved"


_FEW = 12
_HIDDEN = "columns whose names begin with __st_ are the state of a stream table: no query sees them"


def missing(name: exp.Expr, why: str, seen: Sequence[tuple[str, str]]) -> Refusal:
    """The error for a name that means no column; `seen` are tables and columns that may have been
    meant."""
    called = name.sql(DIALECT) if isinstance(name, exp.Column) else name.name
    if _is_too_early(name):
        why = f"'{name.name}' is an output of SELECT, which WHERE comes before"
        fix = "repeat its expression in WHERE, or filter around: SELECT * FROM (…) WHERE …"
    else:
        why = _HIDDEN if name.name.lower().startswith("__st_") else why
        fix = _nearest(name, seen)
    return Mistake(name, f'column "{called}" does not exist', why=why, fix=fix)


def ambiguous(name: exp.Column, tables: Sequence[str]) -> Refusal:
    """The error for a name that means a column of each of some tables."""
    distinct = list(dict.fromkeys(tables))
    if len(distinct) == 1:
        why, fix = f"{distinct[0]} has several columns of this name", "give each its own name"
    else:
        why = f"{' and '.join(distinct)} have a column of this name"
        fix = f"qualify it, for example {distinct[0]}.{name.name}"
    return Mistake(name, f'column "{name.sql(DIALECT)}" is ambiguous', why=why, fix=fix)


def _is_too_early(name: exp.Expr) -> bool:
    """Whether it stands in WHERE, and names an output of the same SELECT."""
    where = name.find_ancestor(exp.Where, exp.Select)
    select = where.parent if isinstance(where, exp.Where) else None
    if name.text("table") or not isinstance(select, exp.Select):
        return False
    return name.name.lower() in (each.alias.lower() for each in select.expressions)


def _nearest(name: exp.Expr, seen: Sequence[tuple[str, str]]) -> str:
    known = dict[str, tuple[str, str]]()
    for table, column in seen:
        known.setdefault(column.lower(), (table, column))
    near = difflib.get_close_matches(name.name.lower(), sorted(known), n=3)
    if near:
        meant = (".".join(known[e]) if name.text("table") else known[e][1] for e in near)
        return f"did you mean {' or '.join(meant)}?"
    few = 0 < len(known) <= _FEW
    names = ", ".join(column for _, column in known.values())
    return f"use one of {names}" if few else "use a column of the tables in FROM"
