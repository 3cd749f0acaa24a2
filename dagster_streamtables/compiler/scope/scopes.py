"""The columns of each FROM clause in a query: its relations, one after the other.

    FROM t AS u (x, y)         u.x, u.y
    a step of a pipe           its columns with the tables that they had, see `pipes`
    a JOIN b USING (k)         k is a.k and comes first; then the other columns of a, and those of b
    a RIGHT JOIN b USING (k)   k is b.k
    a FULL JOIN b USING (k)    k is COALESCE(a.k, b.k)
    a SEMI JOIN b USING (k)    k is a.k and comes first; then the other columns of a

The rules are those of `ResolveNaturalAndUsingJoin` in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlglot import exp

from dagster_streamtables.compiler.scope.from_columns import (
    SPARK,
    FromColumn,
    FromColumns,
    StarRules,
    ambiguous,
    bound_column,
    distinct_columns,
    has_implicit_name,
    missing,
    unknown_columns,
)
from dagster_streamtables.compiler.text.column_names import original_name
from dagster_streamtables.compiler.text.pipes import is_of_step, keeps_tables, number_of
from dagster_streamtables.compiler.text.places import Mistake
from dagster_streamtables.compiler.text.table_mentions import definition_of, first_select, is_group

HALF = ("SEMI", "ANTI")


@dataclass(frozen=True)
class JoinStep:
    """A join or a LATERAL VIEW of a FROM clause."""

    node: exp.Join | exp.Lateral
    before: FromColumns
    """The columns on its left."""
    added: FromColumns
    """The columns on its right."""
    rules: StarRules = SPARK

    @property
    def merge_pairs(self) -> list[tuple[FromColumn, FromColumn]]:
        """The columns that USING or NATURAL compares, from the left and from the right."""
        if is_by_name(self.node):
            self.before.require_known_columns()
            self.added.require_known_columns()
        if self.node.args.get("method") == "NATURAL":
            # Of several with a name, Spark takes the first of each side.
            before = self.before
            firsts = [each for each in before.visible if before.find(each.name)[0] is each]
            pairs = [(each, self.added.find(each.name)) for each in firsts]
            return [(left, right[0]) for left, right in pairs if right]
        return [
            (
                _find_key_column(each, self.before, "left"),
                _find_key_column(each, self.added, "right"),
            )
            for each in self.node.args.get("using") or []
        ]

    @property
    def after(self) -> FromColumns:
        """The columns of the result."""
        if self.node.args.get("kind") in HALF:
            lefts = [left for left, _ in self.merge_pairs]
            return replace(self.before, visible=self._in_order(lefts, lefts))
        if not is_by_name(self.node):
            return self.before.beside(self.added)
        pairs, side = self.merge_pairs, self.node.args.get("side")
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

    def _in_order(
        self, lefts: list[FromColumn], merged: list[FromColumn]
    ) -> tuple[FromColumn, ...]:
        """The columns on the left, in which merged ones replace the keys."""
        if self.rules.keys_first:
            return (*merged, *_without(self.before.visible, lefts))
        new = {id(left): column for left, column in zip(lefts, merged, strict=True)}
        return tuple(new.get(id(each), each) for each in self.before.visible)


def join_without_from(join: exp.Expr) -> Mistake:
    return Mistake(
        join.this,
        "JOIN without FROM",
        why="a join needs a table on its left",
        fix="write FROM before the first table",
    )


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
        self._known: dict[int, tuple[exp.Select, list[JoinStep], FromColumns]] = {}
        self._left: list[FromColumns] = []
        """What stands on the left of the relations whose columns are being found."""

    def columns(self, select: exp.Select) -> FromColumns:
        """The columns of a FROM clause. All methods refuse columns that are not known."""
        return self._from(select)[1]

    def steps(self, select: exp.Select) -> list[JoinStep]:
        """The joins and views of a FROM clause, those in parentheses before the join around
        them."""
        return self._from(select)[0]

    def visible_to(self, node: exp.Join | exp.Lateral, *, both: bool = False) -> FromColumns:
        """What stands on the left of a join or a view; with `both`, and on its right.

        It does not look at what comes after.
        """
        around = node.parent
        if isinstance(around, exp.Select):
            if (clause := around.args.get("from_")) is None:
                raise join_without_from(node)
            first = clause.this
            columns, nodes = self._relation(first, []), _after(around, first)
        else:
            assert around is not None
            in_parentheses = is_group(around)
            columns = self._relation(around.this, []) if in_parentheses else self._of_one(around)
            nodes = _arg(around, "joins")
        before = takewhile(lambda each: each is not node, nodes)
        columns = self._join_columns(columns, list(before), [])
        if both and isinstance(node, exp.Join):
            columns = columns.beside(self._relation(node.this, []))
        return columns

    def outputs(self, query: exp.Expr) -> list[str]:
        """The names of a query's columns; ``_col_0``, by its position, for one without a name."""
        return [name for name, _ in self._outputs(_first_select(query))]

    def expand(
        self, star: exp.Expr, select: exp.Select, columns: FromColumns | None = None
    ) -> list[FromColumn]:
        """The columns that ``*`` or ``t.*`` stands for in a SELECT, which may be a LATERAL one.

        `columns` are those that the star sees of the FROM clause; None for all.
        """
        table = star.table if isinstance(star, exp.Column) else ""
        node = star.this if isinstance(star, exp.Column) else star
        whole = self.columns(select) if columns is None else columns
        seen = [whole, *(reversed(self._left) if table else ())]
        if not table:
            seen[0].require_known_columns()
        stars = (each.star(table, self._rules) for each in seen)
        found = next((columns for columns in stars if columns), [])
        if not found or star.args.get("db") or node.args.get("rename"):
            raise unknown_columns(star)
        replaced, left_out = node.args.get("replace") or [], node.args.get("except_") or []
        if replaced and not is_of_step(node):
            raise unknown_columns(star)
        for value in replaced:
            found = _with_value(found, value)
        for name in () if node.meta.get(_SOME) else left_out:
            _require_once(name, found)
        for name in left_out:
            found = _leave_out(name, found)
        return found

    def _columns_of_step(self, query: exp.Expr) -> list[tuple[str, str]]:
        """The name and the table of each output of a step."""
        select = _first_select(query)
        columns = self.columns(select)
        return [
            (name, each.table if isinstance(each, FromColumn) else columns.table_of(each))
            for name, each in self._outputs(select)
        ]

    def _outputs(self, select: exp.Select) -> list[tuple[str, exp.Expr | FromColumn]]:
        """The name of each output, and what it is: a column of FROM for one that a star or a
        number stands for, else the item of the SELECT list."""
        found = list[tuple[str, exp.Expr | FromColumn]]()
        for item in select.expressions:
            if item.is_star:
                found += [(each.name, each) for each in self.expand(item, select)]
            elif isinstance(item, exp.Aliases):
                found += [(each.name, item) for each in item.expressions]
            elif (number := number_of(item)) is not None:
                column = self.columns(select).at(number, item)
                found.append((column.name, column))
            else:
                found.append((item.alias_or_name or f"_col_{len(found)}", item))
        return found

    def _from(self, select: exp.Select) -> tuple[list[JoinStep], FromColumns]:
        # Once: a FROM clause that is rewritten keeps the columns that its author sees.
        if id(select) not in self._known:
            steps = list[JoinStep]()
            clause = select.args.get("from_")
            columns = FromColumns() if clause is None else self._relation(clause.this, steps)
            first = clause.this if clause is not None else None
            columns = self._join_columns(columns, _after(select, first), steps)
            self._known[id(select)] = select, steps, columns
        return self._known[id(select)][1:]

    def _relation(self, node: exp.Expr, steps: list[JoinStep]) -> FromColumns:
        """The columns of a table, of a subquery, or of joins in parentheses."""
        columns = self._relation(node.this, steps) if is_group(node) else self._of_one(node)
        return self._join_columns(columns, _arg(node, "joins"), steps)

    def _join_columns(
        self, columns: FromColumns, nodes: Sequence[exp.Expr], steps: list[JoinStep]
    ) -> FromColumns:
        for node in nodes:
            if not isinstance(node, exp.Join | exp.Lateral):
                raise unknown_columns(node)
            self._left.append(columns)
            try:
                added = self._relation(node.this if isinstance(node, exp.Join) else node, steps)
            finally:
                self._left.pop()
            steps.append(JoinStep(node, columns, added, self._rules))
            columns = steps[-1].after
        return columns

    def _of_one(self, node: exp.Expr) -> FromColumns:
        alias = node.alias_or_name
        table = exp.to_identifier(alias, quoted=True) if alias else None
        if keeps_tables(node):
            found = self._columns_of_step(node.this)
        else:
            names = node.alias_column_names or self._of_relation(node)
            if names is None:
                return FromColumns(unknown=(node,))
            found = [(name, alias) for name in names]
        same = _names_of_same(node)
        return FromColumns(
            tuple(
                FromColumn(original_name(n), of.lower(), bound_column(same.get(n, n), table), place)
                for place, (n, of) in enumerate(found)
            )
        )

    def _of_relation(self, node: exp.Expr) -> Sequence[str] | None:
        """The names of its columns; None of a function that does not tell them."""
        inner = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(inner, exp.Subquery):
            return self.outputs(inner)
        if isinstance(node, exp.Values):
            return columns_of_values(node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        defined = definition_of(node)
        if defined is not None:
            return defined.alias_column_names or self.outputs(defined.this)
        names = self._columns_of(node)
        if names is None:
            raise unknown_columns(node)
        return names


def _first_select(query: exp.Expr) -> exp.Select:
    select = first_select(query)
    if not isinstance(select, exp.Select):
        raise unknown_columns(select)
    return select


def columns_of_values(values: exp.Values) -> list[str]:
    """Their names, unless an alias has others."""
    return [f"col{place}" for place, _ in enumerate(_arg(values.expressions[0], "expressions"), 1)]


def star_without(names: Iterable[str]) -> exp.Star:
    """All columns but those of some names, as far as there are such columns."""
    star = exp.Star(except_=[exp.column(name, quoted=True) for name in names])
    star.meta[_SOME] = True
    return star


_SOME = "st_some"


def _leave_out(name: exp.Expr, columns: Sequence[FromColumn]) -> list[FromColumn]:
    """The columns without a name; if no column has it, without a field of one."""
    kept = [each for each in columns if not each.has_name(name.name, name.text("table"))]
    if len(kept) < len(columns):
        return kept
    paths = ((each, _fields(name, each)) for each in columns)
    return [replace(e, without=(*e.without, path)) if path else e for e, path in paths]


def _fields(name: exp.Expr, column: FromColumn) -> list[str]:
    """The fields to one in a column; none if the name means no field of the column."""
    parts = [each.name.lower() for each in getattr(name, "parts", [name])]
    if parts[0] == column.table and parts[1:2] == [column.name.lower()]:
        return parts[2:]
    return parts[1:] if parts[0] == column.name.lower() else []


def _require_once(name: exp.Expr, columns: Sequence[FromColumn]) -> None:
    """Refuse a name in EXCEPT or DROP of no column and no field, and of several columns."""
    found = distinct_columns(
        each for each in columns if each.has_name(name.name, name.text("table"))
    )
    if not found and not any(_fields(name, each) for each in columns):
        shown = [(each.table, each.name) for each in columns]
        raise missing(name, "a star leaves out columns that it has", shown)
    if len(found) > 1:
        assert isinstance(name, exp.Column)
        raise ambiguous(name, [each.table or "the query" for each in found])


def _with_value(columns: Sequence[FromColumn], value: exp.Expr) -> list[FromColumn]:
    """The columns before the step SET of a pipe, one with its value."""
    name = value.alias.lower()
    count = len(distinct_columns(each for each in columns if each.name.lower() == name))
    if count != 1:
        raise Mistake(
            value.args["alias"],
            f"SET of {value.alias}, which is {'two columns' if count else 'no column'}",
            why="SET changes one column that is there",
            fix=f"write EXTEND, or one of {', '.join(each.name for each in columns)}",
        )
    new = FromColumn(value.alias, "", value.this)
    return [new if each.name.lower() == name else each for each in columns]


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


def _names_of_same(node: exp.Expr) -> dict[str, str]:
    """Output of a subquery → an earlier output that is the same column, by name.

    Spark knows a column by what it is: no mention of it is ambiguous.
    """
    select = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(select, exp.Select):  # UNION makes others of the columns
        return {}
    seen = dict[exp.Expr, str]()
    found = dict[str, str]()
    for output in select.expressions:
        value = output.unalias()
        if isinstance(value, exp.Column) and has_implicit_name(output):
            found[output.alias] = seen.setdefault(value, output.alias)
    return found


def has_wide_natural_join(tree: exp.Expr) -> bool:
    """Whether the left side of a NATURAL JOIN may have a name twice: it is more than a table."""
    for join in tree.find_all(exp.Join):
        around = join.parent
        clause = around.args.get("from_") if around is not None else None
        first = clause.this if clause is not None else around
        alone = isinstance(first, exp.Table) and definition_of(first) is None and not join.index
        if join.method == "NATURAL" and not alone:
            return True
    return False


def _find_key_column(key: exp.Expr, columns: FromColumns, side: str) -> FromColumn:
    # Of several with the name, Spark takes the first.
    for column in columns.find(key.name):
        return column
    why = f"USING names it, and the {side} side has no such column"
    raise missing(key, why, columns.tables_and_names)


def _either(left: FromColumn, right: FromColumn) -> FromColumn:
    either = exp.Coalesce(this=left.value.copy(), expressions=[right.value.copy()])
    return FromColumn(left.name, "", either)


def _without(columns: Sequence[FromColumn], others: Sequence[FromColumn]) -> tuple[FromColumn, ...]:
    left_out = {each.value for each in others}
    return tuple(each for each in columns if each.value not in left_out)


def _arg(node: exp.Expr | None, name: str) -> list[exp.Expr]:
    return list((node.args.get(name) if node is not None else None) or [])
