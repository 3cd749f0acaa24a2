"""The tree of a random query, and its text in Spark SQL.

Nodes are values. A tree says what is meant and the text says it in full: a window or a LIMIT that
needs a total order has `total`, and the columns that make the order total are written when the
text is, so that a query stays deterministic while the shrinker takes columns out of it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

from qa.fuzz.schema import Kind

Columns = tuple[tuple[str, Kind], ...]


class Node:
    """Anything in a tree."""

    __slots__ = ()

    droppable: ClassVar[dict[str, int]] = {}
    """Field that holds a tuple → how many elements must stay, or an optional field → 0."""

    own_constructs: ClassVar[tuple[str, ...]] = ()

    @property
    def constructs(self) -> tuple[str, ...]:
        """The switches of `switches.py` that this node, without what is below it, is about."""
        return self.own_constructs


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> Iterator[Node]:
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Node):
                yield each


def constructs_of(node: Node) -> frozenset[str]:
    return frozenset(name for each in walk(node) for name in each.constructs)


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) and name != "Order" else f"`{name}`"


@dataclass(frozen=True)
class Context:
    """What the text of an expression depends on besides the expression."""

    columns: tuple[Column, ...] = ()
    """All columns that a window of this SELECT can order by; together they tell rows apart."""
    keys: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Expr(Node):
    kind: Kind

    def sql(self, here: Context) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Column(Expr):
    table: str
    """The alias of its relation; empty where the column is named alone."""
    name: str

    def sql(self, here: Context) -> str:
        return f"{quoted(self.table)}.{quoted(self.name)}" if self.table else quoted(self.name)


@dataclass(frozen=True)
class Alone(Column):
    """A column that a join by names has merged, named without a table."""

    own_constructs: ClassVar[tuple[str, ...]] = ("merged column",)


@dataclass(frozen=True)
class Literal(Expr):
    text: str

    def sql(self, here: Context) -> str:
        return self.text


@dataclass(frozen=True)
class Key(Expr):
    """A key of the GROUP BY of the same SELECT, written out again."""

    position: int

    def sql(self, here: Context) -> str:
        return here.keys[self.position].sql(here)


@dataclass(frozen=True)
class Call(Expr):
    """Any operator or function of a row."""

    template: str
    args: tuple[Expr, ...]
    about: str = ""

    @property
    def constructs(self) -> tuple[str, ...]:
        return (self.about,) if self.about else ()

    def sql(self, here: Context) -> str:
        return self.template.format(*(arg.sql(here) for arg in self.args))


@dataclass(frozen=True)
class Aggregate(Expr):
    template: str
    args: tuple[Expr, ...]
    about: str = ""
    where: Expr | None = None

    droppable: ClassVar[dict[str, int]] = {"where": 0}

    @property
    def constructs(self) -> tuple[str, ...]:
        filtered = ("filter clause",) if self.where else ()
        return ("aggregate", *filtered, *((self.about,) if self.about else ()))

    def sql(self, here: Context) -> str:
        call = self.template.format(*(arg.sql(here) for arg in self.args))
        return f"{call} FILTER (WHERE {self.where.sql(here)})" if self.where else call


@dataclass(frozen=True)
class Order(Node):
    key: Expr
    way: str = ""
    """`DESC`, `NULLS LAST`, …"""

    def sql(self, here: Context) -> str:
        return f"{self.key.sql(here)} {self.way}".strip()


@dataclass(frozen=True)
class Spec(Node):
    """PARTITION BY, ORDER BY, frame."""

    partition: tuple[Expr, ...] = ()
    order: tuple[Order, ...] = ()
    frame: str = ""
    total: bool = False
    """The position of each row counts: order by all columns after the given keys."""

    droppable: ClassVar[dict[str, int]] = {"partition": 0, "order": 0}

    def sql(self, here: Context) -> str:
        keys = [each.sql(here) for each in self.order]
        if self.total:
            keys += [column.sql(here) for column in here.columns]
        parts = []
        if self.partition:
            parts.append(f"PARTITION BY {', '.join(e.sql(here) for e in self.partition)}")
        if keys:
            parts.append(f"ORDER BY {', '.join(dict.fromkeys(keys))}")
        if self.frame and keys:
            parts.append(self.frame)
        return " ".join(parts)


@dataclass(frozen=True)
class Over(Expr):
    """A window function."""

    template: str
    args: tuple[Expr, ...]
    spec: Spec
    named: bool = False
    where: Expr | None = None

    droppable: ClassVar[dict[str, int]] = {"where": 0}

    @property
    def constructs(self) -> tuple[str, ...]:
        kinds = {"RANGE": "range frame", "ROWS": "frame"}
        frame = kinds.get(self.spec.frame.split(" ")[0], "")
        named = "named window" if self.named else ""
        where = "window filter" if self.where else ""
        return ("window", *(word for word in (frame, named, where) if word))

    def sql(self, here: Context) -> str:
        call = self.template.format(*(arg.sql(here) for arg in self.args))
        if self.where:
            call = f"{call} FILTER (WHERE {self.where.sql(here)})"
        return f"{call} OVER {self.name(here) if self.named else f'({self.spec.sql(here)})'}"

    def name(self, here: Context) -> str:
        """Windows with one text have one name."""
        return f"w{zlib.crc32(self.spec.sql(here).encode()) % 10_000}"


@dataclass(frozen=True)
class Ask(Expr):
    """A subquery in an expression."""

    template: str
    """With `{query}` for the subquery and `{0}` … for the arguments."""
    args: tuple[Expr, ...]
    query: Query
    about: tuple[str, ...]

    @property
    def constructs(self) -> tuple[str, ...]:
        return self.about

    def sql(self, here: Context) -> str:
        return self.template.format(*(a.sql(here) for a in self.args), query=self.query.sql())


class Query(Node):
    """Anything that yields rows with named columns."""

    __slots__ = ()

    @property
    def outputs(self) -> Columns:
        raise NotImplementedError

    def sql(self) -> str:
        raise NotImplementedError


class Relation(Node):
    """Anything that can stand in FROM. `alias` names its columns."""

    __slots__ = ()

    alias: str

    @property
    def outputs(self) -> Columns:
        raise NotImplementedError

    def sql(self) -> str:
        raise NotImplementedError

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(kind, self.alias, name) for name, kind in self.outputs)
