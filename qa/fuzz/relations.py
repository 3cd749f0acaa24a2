"""What stands in FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qa.fuzz.schema import columns_of
from qa.fuzz.tree import (
    Call,
    Column,
    Columns,
    Context,
    Expr,
    Literal,
    Node,
    Query,
    Relation,
    quoted,
)


@dataclass(frozen=True)
class Table(Relation):
    """A source, or with `known` a common table expression."""

    name: str
    alias: str
    known: Columns = ()
    renames: tuple[str, ...] = ()

    @property
    def constructs(self) -> tuple[str, ...]:
        return ("column aliases",) if self.renames else ()

    @property
    def outputs(self) -> Columns:
        columns = self.known or columns_of(self.name)
        if not self.renames:
            return columns
        return tuple((new, kind) for new, (_, kind) in zip(self.renames, columns, strict=True))

    def sql(self) -> str:
        if self.renames:
            return f"{quoted(self.name)} AS {self.alias}({', '.join(map(quoted, self.renames))})"
        same = self.alias == self.name
        return quoted(self.name) if same else f"{quoted(self.name)} AS {self.alias}"


@dataclass(frozen=True)
class Derived(Relation):
    """A subquery in FROM; a lateral one may name what stands to its left."""

    query: Query
    alias: str
    renames: tuple[str, ...] = ()
    lateral: str = ""
    """The constructs of a lateral subquery, joined by commas; empty for another."""

    @property
    def constructs(self) -> tuple[str, ...]:
        renamed = ("column aliases",) if self.renames else ()
        return (*(self.lateral.split(",") if self.lateral else ["derived table"]), *renamed)

    @property
    def outputs(self) -> Columns:
        outputs = self.query.outputs
        if len(self.renames) != len(outputs):
            return outputs
        return tuple((new, kind) for new, (_, kind) in zip(self.renames, outputs, strict=True))

    def sql(self) -> str:
        names = f"({', '.join(map(quoted, self.renames))})" if self.renames else ""
        return f"{'LATERAL ' * bool(self.lateral)}({self.query.sql()}) AS {self.alias}{names}"


@dataclass(frozen=True)
class Values(Relation):
    rows: tuple[tuple[Literal, ...], ...]
    alias: str
    names: Columns

    droppable: ClassVar[dict[str, int]] = {"rows": 1}
    own_constructs: ClassVar[tuple[str, ...]] = ("values",)

    @property
    def outputs(self) -> Columns:
        return self.names

    def sql(self) -> str:
        rows = (f"({', '.join(each.text for each in row)})" for row in self.rows)
        names = ", ".join(quoted(name) for name, _ in self.names)
        return f"(VALUES {', '.join(rows)}) AS {self.alias}({names})"


@dataclass(frozen=True)
class Pivoted(Relation):
    """The query's other columns group; `total` is aggregated for each value of `by`."""

    query: Query
    by: str
    total: Call
    values: tuple[tuple[str, str], ...]
    """(literal, name of the column)"""
    alias: str

    droppable: ClassVar[dict[str, int]] = {"values": 1}
    own_constructs: ClassVar[tuple[str, ...]] = ("pivot",)

    @property
    def outputs(self) -> Columns:
        # The shrinker may put a column in place of the call.
        args = self.total.args if isinstance(self.total, Call) else (self.total,)
        used = {self.by, *(c.name for c in args if isinstance(c, Column))}
        kept = tuple((name, kind) for name, kind in self.query.outputs if name not in used)
        return (*kept, *((name, self.total.kind) for _, name in self.values))

    def sql(self) -> str:
        values = ", ".join(f"{value} AS {name}" for value, name in self.values)
        total = self.total.sql(Context())
        pivot = f"PIVOT ({total} FOR {quoted(self.by)} IN ({values}))"
        return f"(SELECT * FROM ({self.query.sql()}) {pivot}) AS {self.alias}"


@dataclass(frozen=True)
class Written(Relation):
    """A derived table of one text."""

    text: str
    alias: str
    names: Columns
    about: str

    @property
    def constructs(self) -> tuple[str, ...]:
        return (self.about,)

    @property
    def outputs(self) -> Columns:
        return self.names

    def sql(self) -> str:
        return f"({self.text}) AS {self.alias}"


@dataclass(frozen=True)
class Function(Relation):
    """A table function of what stands to its left: `LATERAL explode(x) AS e(v)`."""

    word: str
    arg: Expr
    alias: str
    names: Columns

    own_constructs: ClassVar[tuple[str, ...]] = ("explode",)

    @property
    def outputs(self) -> Columns:
        return self.names

    def sql(self) -> str:
        names = ", ".join(quoted(name) for name, _ in self.names)
        return f"LATERAL {self.word}({self.arg.sql(Context())}) AS {self.alias}({names})"


@dataclass(frozen=True)
class View(Node):
    """LATERAL VIEW."""

    word: str
    outer: bool
    arg: Expr
    alias: str
    names: Columns

    own_constructs: ClassVar[tuple[str, ...]] = ("lateral view",)

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(kind, self.alias, name) for name, kind in self.names)

    def sql(self, here: Context) -> str:
        names = ", ".join(quoted(name) for name, _ in self.names)
        outer = "OUTER " * self.outer
        return f" LATERAL VIEW {outer}{self.word}({self.arg.sql(here)}) {self.alias} AS {names}"


@dataclass(frozen=True)
class Join(Node):
    word: str
    """`JOIN`, `LEFT JOIN`, `,` …"""
    relation: Relation
    on: Expr | None = None
    using: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def constructs(self) -> tuple[str, ...]:
        if isinstance(self.relation, Derived) and self.relation.lateral:
            return self.about
        word = {
            "JOIN": "join", ",": "cross join", "CROSS JOIN": "cross join",
            "LEFT SEMI JOIN": "semi join", "LEFT ANTI JOIN": "anti join",
        }.get(self.word, "natural join" if "NATURAL" in self.word else "outer join")  # fmt: skip
        return (word, *self.about, *(("using",) * bool(self.using)))

    @property
    def hides(self) -> bool:
        """Whether the columns of the right side cannot be named behind the join."""
        return "SEMI" in self.word or "ANTI" in self.word

    def sql(self, here: Context) -> str:
        comma = self.word == ","
        text = f"{self.word if comma else f' {self.word}'} {self.relation.sql()}"
        if self.using:
            return f"{text} USING ({', '.join(map(quoted, self.using))})"
        return f"{text} ON {self.on.sql(here)}" if self.on is not None else text
