"""The columns of a FROM clause, in the order of Spark, and what each means.

    a JOIN b USING (k)         k is a.k and comes first; then the other columns of a, and those of b
    a RIGHT JOIN b USING (k)   k is b.k
    a FULL JOIN b USING (k)    k is COALESCE(a.k, b.k)
    a SEMI JOIN b USING (k)    k is a.k and comes first; then the other columns of a

The columns that were merged into k are hidden: only ``b.k`` and ``b.*`` find them, ``*`` does not.
The rules are those of `ResolveNaturalAndUsingJoin` and `UnresolvedStarBase.expand` in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from sqlglot import exp

from dagster_streamtables.compiler.scope.unresolved import missing
from dagster_streamtables.compiler.text.aliases import is_group
from dagster_streamtables.compiler.text.column_names import repeated
from dagster_streamtables.compiler.text.places import Refusal

HALF = ("SEMI", "ANTI")


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

    def as_output(self) -> exp.Expr:
        """The column among the outputs of a SELECT."""
        return unnamed_output(self.value.copy(), self.name)

    @property
    def names(self) -> set[str]:
        """Those that a mention may call it, in lower case.

        One of several outputs of a name has another in the query below.
        """
        return {self.name.lower(), self.value.name.lower()}

    def is_called(self, name: str, table: str = "") -> bool:
        return name.lower() in self.names and table.lower() in ("", self.table)


def unnamed_output(value: exp.Expr, name: str | exp.Identifier) -> exp.Alias:
    """An output to which its author gives no name with AS."""
    output = exp.Alias(this=value, alias=exp.to_identifier(name))
    output.meta[_UNNAMED] = True
    return output


def is_unnamed(output: exp.Expr) -> bool:
    return bool(output.meta.get(_UNNAMED))


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
        found = [each for each in named if table.lower() in ("", each.table)]
        # Of outputs that are the same column, one kept its name; see `resolve`.
        return [each for each in found if each.value.name.lower() == name.lower()] or found

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[FromColumn]]:
        found = dict[str, list[FromColumn]]()
        for each in self.visible:
            for name in each.names:
                found.setdefault(name, []).append(each)
        return found

    def find_hidden(self, name: str, table: str) -> list[FromColumn]:
        """The merged columns that a qualified name may mean."""
        return [each for each in self.hidden if each.is_called(name, table)]

    def star(self, table: str, rules: StarRules) -> list[FromColumn]:
        """The columns of ``table.*``, or of ``*`` if the table is empty."""
        if not table:
            return list(self.visible)
        found = [each for each in (*self.hidden, *self.visible) if each.table == table.lower()]
        return found if rules.hidden_first else sorted(found, key=lambda each: each.place)

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

    def require_known(self) -> None:
        """
        Raises:
            Refusal: The columns of a function are not known.
        """
        for each in self.unknown:
            raise unknown_columns(each)


@dataclass(frozen=True)
class Step:
    """A join or a LATERAL VIEW of a FROM clause."""

    node: exp.Join | exp.Lateral
    before: FromColumns
    """The columns on its left."""
    added: FromColumns
    """The columns on its right."""
    rules: StarRules = SPARK

    @property
    def merged(self) -> list[tuple[FromColumn, FromColumn]]:
        """The columns that USING or NATURAL compares, from the left and from the right.

        Raises:
            Refusal: One side has no column of a name in USING, or its columns are not known.
        """
        if is_by_name(self.node):
            self.before.require_known()
            self.added.require_known()
        if self.node.args.get("method") == "NATURAL":
            # Of several with a name, Spark takes the first of each side.
            before = self.before
            firsts = [each for each in before.visible if before.find(each.name)[0] is each]
            pairs = [(each, self.added.find(each.name)) for each in firsts]
            return [(left, right[0]) for left, right in pairs if right]
        return [
            (_named(each, self.before, "left"), _named(each, self.added, "right"))
            for each in self.node.args.get("using") or []
        ]

    @property
    def after(self) -> FromColumns:
        """The columns of the result."""
        if self.node.args.get("kind") in HALF:
            return self._of_left_rows
        if not is_by_name(self.node):
            return self.before.beside(self.added)
        pairs, side = self.merged, self.node.args.get("side")
        lefts, rights = [left for left, _ in pairs], [right for _, right in pairs]
        hidden = self.before.hidden + self.added.hidden
        if side == "FULL":
            merged, hidden = [_either(*pair) for pair in pairs], (*lefts, *rights, *hidden)
        elif side == "RIGHT":
            merged, hidden = rights, (*lefts, *hidden)
        else:
            merged, hidden = lefts, (*rights, *hidden)
        others = _without(self.added.visible, rights)
        return FromColumns((*self._in_order(lefts, merged), *others), hidden)

    @property
    def _of_left_rows(self) -> FromColumns:
        lefts = [left for left, _ in self.merged]
        return replace(self.before, visible=self._in_order(lefts, lefts))

    def _in_order(
        self, lefts: list[FromColumn], merged: list[FromColumn]
    ) -> tuple[FromColumn, ...]:
        """The columns on the left, with the merged ones in place of theirs."""
        if self.rules.keys_first:
            return (*merged, *_without(self.before.visible, lefts))
        new = {id(left): column for left, column in zip(lefts, merged, strict=True)}
        return tuple(new.get(id(each), each) for each in self.before.visible)


class Scopes:
    """The columns of the FROM clauses in one query."""

    def __init__(
        self,
        columns_of: Callable[[exp.Table], Sequence[str] | None],
        rules: StarRules = SPARK,
    ) -> None:
        """
        Args:
            columns_of: The columns of a table that no WITH defines; None if they are not known.
            rules: Those of the dialect of the query.
        """
        self._columns_of, self._rules = columns_of, rules
        # With the SELECT: the id of a node that is gone may be given to another.
        self._known: dict[int, tuple[exp.Select, list[Step], FromColumns]] = {}
        self._left: list[FromColumns] = []
        """What stands on the left of the relations whose columns are being found."""

    def columns(self, select: exp.Select) -> FromColumns:
        """The columns of a FROM clause.

        Raises:
            Refusal: They are not known.
        """
        return self._from(select)[1]

    def steps(self, select: exp.Select) -> list[Step]:
        """The joins and views of a FROM clause, those in parentheses before the join around them.

        Raises:
            Refusal: The columns are not known, or USING names one that a side does not have.
        """
        return self._from(select)[0]

    def seen_by(self, node: exp.Join | exp.Lateral, *, both: bool = False) -> FromColumns:
        """What stands on the left of a join or a view; with `both`, and on its right.

        It does not look at what comes after.
        """
        around = node.parent
        if isinstance(around, exp.Select):
            first = around.args["from_"].this
            columns, nodes = self._relation(first, []), _after(around, first)
        else:
            assert around is not None
            in_parentheses = is_group(around)
            columns = self._relation(around.this, []) if in_parentheses else self._of_one(around)
            nodes = _arg(around, "joins")
        before = takewhile(lambda each: each is not node, nodes)
        columns = self._joined(columns, list(before), [])
        if both and isinstance(node, exp.Join):
            columns = columns.beside(self._relation(node.this, []))
        return columns

    def outputs(self, query: exp.Expr) -> list[str]:
        """The names of a query's columns; ``_col_0``, by its position, for one without a name.

        Raises:
            Refusal: They are not known.
        """
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            raise unknown_columns(query)
        names = list[str]()
        for item in query.expressions:
            names += self._names(item, query, len(names))
        return names

    def expand(self, star: exp.Expr, select: exp.Select) -> list[FromColumn]:
        """The columns that ``*`` or ``t.*`` stands for in a SELECT, which may be a LATERAL one.

        Raises:
            Refusal: They are not known, or it is a star over the fields of a struct.
        """
        table = star.table if isinstance(star, exp.Column) else ""
        node = star.this if isinstance(star, exp.Column) else star
        seen = [self.columns(select), *(reversed(self._left) if table else ())]
        if not table:
            seen[0].require_known()
        stars = (each.star(table, self._rules) for each in seen)
        found = next((columns for columns in stars if columns), [])
        if not found or star.args.get("db") or node.args.get("replace") or node.args.get("rename"):
            raise unknown_columns(star)
        left_out = [(e.name, e.text("table")) for e in node.args.get("except_") or []]
        return [each for each in found if not any(each.is_called(*one) for one in left_out)]

    def _names(self, item: exp.Expr, select: exp.Select, position: int) -> list[str]:
        if item.is_star:
            return [each.name for each in self.expand(item, select)]
        if isinstance(item, exp.Aliases):
            return [each.name for each in item.expressions]
        return [item.alias_or_name or f"_col_{position}"]

    def _from(self, select: exp.Select) -> tuple[list[Step], FromColumns]:
        # Once: a FROM clause that is rewritten keeps the columns that its author sees.
        if id(select) not in self._known:
            steps = list[Step]()
            clause = select.args.get("from_")
            columns = FromColumns() if clause is None else self._relation(clause.this, steps)
            first = clause.this if clause is not None else None
            columns = self._joined(columns, _after(select, first), steps)
            self._known[id(select)] = select, steps, columns
        return self._known[id(select)][1:]

    def _relation(self, node: exp.Expr, steps: list[Step]) -> FromColumns:
        """The columns of a table, of a subquery, or of joins in parentheses."""
        columns = self._relation(node.this, steps) if is_group(node) else self._of_one(node)
        return self._joined(columns, _arg(node, "joins"), steps)

    def _joined(
        self, columns: FromColumns, nodes: Sequence[exp.Expr], steps: list[Step]
    ) -> FromColumns:
        for node in nodes:
            if not isinstance(node, exp.Join | exp.Lateral):
                raise unknown_columns(node)
            self._left.append(columns)
            try:
                added = self._relation(node.this if isinstance(node, exp.Join) else node, steps)
            finally:
                self._left.pop()
            steps.append(Step(node, columns, added, self._rules))
            columns = steps[-1].after
        return columns

    def _of_one(self, node: exp.Expr) -> FromColumns:
        alias = node.alias_or_name
        table = exp.to_identifier(alias, quoted=True) if alias else None
        names = node.alias_column_names or self._of_relation(node)
        if names is None:
            return FromColumns(unknown=(node,))
        return FromColumns(
            tuple(
                FromColumn(repeated(n), alias.lower(), _resolved(n, table), place)
                for place, n in enumerate(names)
            )
        )

    def _of_relation(self, node: exp.Expr) -> Sequence[str] | None:
        """The names of its columns; None of a function that does not tell them."""
        if isinstance(node, exp.Subquery):
            return self.outputs(node.this)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            return self.outputs(node.this)
        if isinstance(node, exp.Values):
            return [f"col{at}" for at, _ in enumerate(_arg(node.expressions[0], "expressions"), 1)]
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        defined = definition_of(node)
        if defined is not None:
            return defined.alias_column_names or self.outputs(defined.this)
        names = self._columns_of(node)
        if names is None:
            raise unknown_columns(node)
        return names


def _after(select: exp.Expr | None, first: exp.Expr | None) -> list[exp.Expr]:
    """The joins and views of a SELECT, after those of its first relation."""
    views = [*_arg(first, "laterals"), *_arg(select, "laterals")]
    return [*_arg(select, "joins"), *views]


def joins_by_name(select: exp.Select) -> bool:
    """Whether a join in the FROM clause of a SELECT matches columns by name."""
    clause = select.args.get("from_")
    return any(
        is_by_name(join)
        for relation in (clause, *_arg(select, "joins"))
        if relation is not None
        for join in relation.find_all(exp.Join)
        if join.find_ancestor(exp.Select) is select
    )


def is_by_name(node: exp.Expr) -> bool:
    """Whether a join has USING or NATURAL."""
    return bool(node.args.get("using")) or node.args.get("method") == "NATURAL"


def unknown_columns(node: exp.Expr) -> Refusal:
    return Refusal(
        node,
        "a join that matches columns by name, of which one side has unknown columns",
        why="only Spark knows them, and USING, NATURAL and * depend on all columns",
        fix="name the columns, as in f(x) AS t(a, b), or match them with ON and list the outputs",
    )


def _resolved(name: str, table: exp.Identifier | None) -> exp.Column:
    column = exp.column(exp.to_identifier(name, quoted=True), table=table)
    column.meta[_RESOLVED] = True
    return column


def is_resolved(column: exp.Column) -> bool:
    """Whether it comes from `FromColumns`, and has the alias of its table."""
    return bool(column.meta.get(_RESOLVED))


_RESOLVED = "st_resolved"


def has_wide_natural_join(tree: exp.Expr) -> bool:
    """Whether the left side of a NATURAL JOIN may have a name twice: it is more than a table."""
    joins = (each for each in tree.find_all(exp.Join) if each.method == "NATURAL")
    return any(each.index or not _is_table(_first(each.parent)) for each in joins)


def _first(around: exp.Expr | None) -> exp.Expr | None:
    """The relation that the first join of a FROM clause, or of parentheses, follows."""
    clause = around.args.get("from_") if around is not None else None
    return clause.this if clause is not None else around


def _is_table(relation: exp.Expr | None) -> bool:
    return isinstance(relation, exp.Table) and definition_of(relation) is None


def renamed_definitions(tree: exp.Expr) -> Iterator[exp.Table]:
    """The mentions of definitions whose columns have other names: ``FROM t AS u (a, b)``."""
    for table in tree.find_all(exp.Table):
        if table.alias_column_names and definition_of(table) is not None:
            yield table


def definition_of(table: exp.Table) -> exp.CTE | None:
    """What WITH defines for the name of a table."""
    inside: exp.Expr = table
    around = table.parent
    while around is not None and not table.db:
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            seen = list[exp.CTE](clause.expressions)
            if inside is clause:  # the table stands in one of them, and sees those before it
                at = next(i for i, each in enumerate(seen) if holds(each, table))
                seen = seen[: at + bool(clause.args.get("recursive"))]
            for cte in reversed(seen):
                if cte.alias.lower() == table.name.lower():
                    return cte
        inside, around = around, around.parent
    return None


def holds(around: exp.Expr, node: exp.Expr | None) -> bool:
    """Whether a node is another one, or stands in it."""
    while node is not None and node is not around:
        node = node.parent
    return node is not None


def _named(key: exp.Expr, columns: FromColumns, side: str) -> FromColumn:
    # Of several with the name, Spark takes the first.
    for column in columns.find(key.name):
        return column
    why = f"USING names it, and the {side} side has no such column"
    raise missing(key, why, columns.tables_and_names)


def _either(left: FromColumn, right: FromColumn) -> FromColumn:
    either = exp.Coalesce(this=left.value.copy(), expressions=[right.value.copy()])
    return FromColumn(left.name, "", either)


def _without(columns: Sequence[FromColumn], others: Sequence[FromColumn]) -> tuple[FromColumn, ...]:
    left_out = {id(each) for each in others}
    return tuple(each for each in columns if id(each) not in left_out)


def _arg(node: exp.Expr | None, name: str) -> list[exp.Expr]:
    return list((node.args.get(name) if node is not None else None) or [])
