"""SELECT, set operations, WITH, and recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qa.fuzz.from_clause import FromClause
from qa.fuzz.relations import Join, Table, View
from qa.fuzz.tree import (
    Alone,
    Ask,
    Column,
    Columns,
    Context,
    Expr,
    Key,
    Node,
    Over,
    Query,
    Relation,
    quoted,
    walk,
)


def holds(kind: type[Expr], value: Expr) -> bool:
    return any(isinstance(each, kind) for each in walk(value))


@dataclass(frozen=True)
class Output(Node):
    name: str
    value: Expr

    def sql(self, here: Context) -> str:
        text = self.value.sql(here)
        bare = isinstance(self.value, Column) and self.value.name == self.name
        return text if bare else f"{text} AS {quoted(self.name)}"


@dataclass(frozen=True)
class Star(Node):
    """``*`` or ``t.*``, with EXCEPT for some columns."""

    table: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def constructs(self) -> tuple[str, ...]:
        words = {"star": not self.table, "star of table": bool(self.table)}
        words["star except"] = bool(self.left_out)
        return tuple(word for word, there in words.items() if there)

    def columns(self, clause: FromClause) -> list[Column]:
        return [each for each in clause.star(self.table) if each.name not in self.left_out]

    def sql(self) -> str:
        text = f"{quoted(self.table)}.*" if self.table else "*"
        names = ", ".join(map(quoted, self.left_out))
        return f"{text} EXCEPT ({names})" if names else text


@dataclass(frozen=True)
class Group(Node):
    keys: tuple[Expr, ...]
    kind: str = ""
    """`CUBE`, `ROLLUP`, `GROUPING SETS`, or nothing."""
    sets: tuple[tuple[int, ...], ...] = ()
    ordinal: bool = False
    all: bool = False
    """Written as `GROUP BY ALL`: every key is an output, and no other output names a key."""

    droppable: ClassVar[dict[str, int]] = {"sets": 1, "all": 0}

    @property
    def constructs(self) -> tuple[str, ...]:
        words = {"ordinal": self.ordinal, "group by all": self.all}
        kind = (self.kind.lower(),) if self.kind else ()
        return (*kind, *(word for word, there in words.items() if there))

    def sql(self, here: Context, places: dict[int, int]) -> str:
        if self.all:
            return "ALL"
        texts = [
            str(places[i]) if self.ordinal and i in places else key.sql(here)
            for i, key in enumerate(self.keys)
        ]
        if self.kind == "GROUPING SETS":
            sets = (f"({', '.join(texts[i] for i in each)})" for each in self.sets)
            return f"GROUPING SETS ({', '.join(sets)})"
        return f"{self.kind} ({', '.join(texts)})" if self.kind else ", ".join(texts)


@dataclass(frozen=True)
class Top(Node):
    """ORDER BY all outputs, and how many rows of it; None for all."""

    limit: int | None
    offset: int = 0
    way: str = ""

    @property
    def constructs(self) -> tuple[str, ...]:
        if self.limit is None:
            return ("order by",)
        return ("limit", *(("offset",) * bool(self.offset)))

    def sql(self, names: list[str]) -> str:
        ways = [self.way, *[""] * len(names)]
        keys = (f"{quoted(n)} {way}".strip() for n, way in zip(names, ways, strict=False))
        text = f" ORDER BY {', '.join(keys)}"
        if self.limit is not None:
            text += f" LIMIT {self.limit}" + (f" OFFSET {self.offset}" if self.offset else "")
        return text


@dataclass(frozen=True)
class Select(Query):
    select: tuple[Output, ...]
    """Behind the stars."""
    start: Relation
    joins: tuple[Join, ...] = ()
    views: tuple[View, ...] = ()
    where: Expr | None = None
    group: Group | None = None
    having: Expr | None = None
    qualify: Expr | None = None
    distinct: bool = False
    stars: tuple[Star, ...] = ()
    top: Top | None = None
    from_first: bool = False

    droppable: ClassVar[dict[str, int]] = {
        "select": 0, "stars": 0, "joins": 0, "views": 0, "where": 0, "group": 0, "having": 0,
        "qualify": 0, "distinct": 0, "top": 0, "from_first": 0,
    }  # fmt: skip

    @property
    def constructs(self) -> tuple[str, ...]:
        values = [output.value for output in self.select]
        windowed = [value for value in values if holds(Over, value)]
        keys = self.group.keys if self.group is not None else ()
        words = {
            "distinct": self.distinct, "having": self.having is not None,
            "from first": self.from_first,
            "alias of output": any(_names_an_output(value) for value in values),
            "qualify": self.qualify is not None,
            "grand total": self.group is not None and not self.group.keys,
            "window in expression": any(not isinstance(value, Over) for value in windowed),
            "window over groups": self.group is not None and bool(windowed),
            "subquery in output": any(holds(Ask, value) for value in values),
            "subquery in having": self.having is not None and holds(Ask, self.having),
            "subquery in key": any(holds(Ask, key) for key in keys),
            "subquery in on": any(j.on is not None and holds(Ask, j.on) for j in self.joins),
        }  # fmt: skip
        return tuple(word for word, there in words.items() if there)

    @property
    def outputs(self) -> Columns:
        stars = [column for star in self.stars for column in star.columns(self.clause)]
        return (
            *((column.name, column.kind) for column in stars),
            *((each.name, each.value.kind) for each in self.select),
        )

    @property
    def clause(self) -> FromClause:
        return FromClause.of(self.start, self.joins, self.views)

    @property
    def here(self) -> Context:
        relations = (self.start, *(join.relation for join in self.joins if not join.hides))
        columns = [column for each in (*relations, *self.views) for column in each.columns()]
        if self.group is not None:
            keys = self.group.keys
            return Context(tuple(Key(k.kind, i) for i, k in enumerate(keys)), keys)  # type: ignore[arg-type]
        return Context(tuple(columns))

    def sql(self) -> str:
        here = self.here
        select = f"SELECT {'DISTINCT ' * self.distinct}{self.select_list(here)}"
        text = f"{self.sources(here)} {select}" if self.from_first else ""
        text = text or f"{select} {self.sources(here)}"
        if self.where:
            text += f" WHERE {self.where.sql(here)}"
        if self.group and self.group.keys:
            places = {
                o.value.position: i + 1
                for i, o in enumerate(self.select)
                if isinstance(o.value, Key)
            }
            text += f" GROUP BY {self.group.sql(here, places)}"
        if self.having:
            text += f" HAVING {self.having.sql(here)}"
        if self.qualify:
            text += f" QUALIFY {self.qualify.sql(here)}"
        text += self._windows(here)
        return text + (self.top.sql([name for name, _ in self.outputs]) if self.top else "")

    def select_list(self, here: Context) -> str:
        """What stands behind SELECT."""
        stars = (each.sql() for each in self.stars)
        return ", ".join((*stars, *(each.sql(here) for each in self.select)))

    def sources(self, here: Context) -> str:
        """The FROM clause."""
        joins = "".join(join.sql(here) for join in self.joins)
        return f"FROM {self.start.sql()}{joins}{''.join(v.sql(here) for v in self.views)}"

    def _windows(self, here: Context) -> str:
        parts = [*self.select, *([self.qualify] if self.qualify else [])]
        overs = [n for part in parts for n in walk(part) if isinstance(n, Over) and n.named]
        named = {over.name(here): over.spec.sql(here) for over in overs}
        clauses = (f"{name} AS ({spec})" for name, spec in named.items())
        return f" WINDOW {', '.join(clauses)}" if named else ""


@dataclass(frozen=True)
class SetOperation(Query):
    """Both sides have the same columns of the same kinds."""

    word: str
    left: Query
    right: Query
    top: Top | None = None

    droppable: ClassVar[dict[str, int]] = {"top": 0}

    @property
    def constructs(self) -> tuple[str, ...]:
        return (self.word.lower(),)

    @property
    def outputs(self) -> Columns:
        return self.left.outputs

    def sql(self) -> str:
        text = f"{_side(self.left)} {self.word} {_side(self.right)}"
        return text + (self.top.sql([name for name, _ in self.outputs]) if self.top else "")


def _side(query: Query) -> str:
    plain = isinstance(query, Select) and query.top is None and not query.from_first
    return query.sql() if plain and "QUALIFY" not in query.sql() else f"({query.sql()})"


def _names_an_output(value: Expr) -> bool:
    columns = (each for each in walk(value) if isinstance(each, Column))
    return any(not each.table and not isinstance(each, Alone) for each in columns)


@dataclass(frozen=True)
class Clause(Node):
    """One common table expression."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()

    @property
    def recursive(self) -> bool:
        return isinstance(self.query, Recursion)

    def sql(self) -> str:
        names = f"({', '.join(map(quoted, self.columns))})" if self.columns else ""
        return f"{quoted(self.name)}{names} AS ({self.query.sql()})"


@dataclass(frozen=True)
class Recursion(Query):
    """The body of a recursive clause; the step reads the clause by its name."""

    base: Query
    step: Query

    own_constructs: ClassVar[tuple[str, ...]] = ("recursion",)

    @property
    def outputs(self) -> Columns:
        return self.base.outputs

    def sql(self) -> str:
        return f"{self.base.sql()} UNION ALL {self.step.sql()}"


@dataclass(frozen=True)
class With(Query):
    clauses: tuple[Clause, ...]
    body: Query

    droppable: ClassVar[dict[str, int]] = {"clauses": 0}

    @property
    def constructs(self) -> tuple[str, ...]:
        read = [each.name for each in walk(self) if isinstance(each, Table)]
        shared = any(read.count(clause.name) > 1 for clause in self.clauses)
        plain = any(not clause.recursive for clause in self.clauses)
        return (*(("cte",) * plain), *(("shared cte",) * shared))

    @property
    def outputs(self) -> Columns:
        return self.body.outputs

    def sql(self) -> str:
        if not self.clauses:
            return self.body.sql()
        word = "WITH RECURSIVE" if any(c.recursive for c in self.clauses) else "WITH"
        return f"{word} {', '.join(c.sql() for c in self.clauses)} {self.body.sql()}"
