"""Every name of a column in a query → the column, the output, or the field that it means.

    clause                   a name means, in this order
    FROM, ON                 a column of what stands on its left (ON: on both its sides)
    WHERE, WINDOW            a column of FROM
    SELECT list              a column of FROM, an output on its left
    GROUP BY                 a column of FROM, an output; a number, an output
    HAVING                   a key, or inside an aggregate a column of FROM; an output; a column
    QUALIFY                  a column of FROM, an output
    ORDER BY                 an output, a column of FROM (inside a call over many rows: in the
                             other order); a number, an output
    all of them              last, a column of the query around

``a.b`` is the column b of the table a, or else the field b of a column a. These are the rules of
`ResolveReferences` and `ResolveLateralColumnAliasReference` in Spark.

SELECTs are resolved from the inside out, so that one finds all that it reads as it will be. After
this module: each column has the alias of its table, or none, and then it names an output (in ORDER
BY only); each output has a name; stars, numbers, USING, NATURAL and lists of columns after an alias
are gone; in a query inside another, outputs of one name have other names, which nothing
mentions. (To mention such a column is ambiguous, to have it is not: Spark goes by position.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify_parens
from sqlglot.schema import Schema

from dagster_streamtables.compiler.analyze.from_relations import (
    flatten_joins,
    name_relations,
    rename_outputs,
    rename_semi_join_sides,
    require_distinct_aliases,
)
from dagster_streamtables.compiler.analyze.group_and_order_by import (
    expand_group_by_all,
    expand_order_by_all,
)
from dagster_streamtables.compiler.analyze.stars import expand_stars, require_no_stars
from dagster_streamtables.compiler.scope.from_columns import (
    FromColumns,
    has_implicit_name,
    implicit_output,
    missing,
)
from dagster_streamtables.compiler.scope.mentions import (
    among,
    copy_with_position,
    levels_around,
    mentions,
    of_queries_around,
    with_fields,
)
from dagster_streamtables.compiler.scope.scopes import (
    JoinStep,
    Scopes,
    is_by_name,
    join_without_from,
)
from dagster_streamtables.compiler.text.column_names import distinct_name
from dagster_streamtables.compiler.text.group_by import calls, is_call, is_of_window
from dagster_streamtables.compiler.text.pipes import keeps_tables, number_of
from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.table_mentions import first_select, own_aliases

_FROM = ("with_", "from_", "joins", "laterals")
_AFTER = ("group", "having", "qualify")
_SORTED = ("order", "sort", "cluster")
_OTHERS = {*_FROM, "expressions", *_AFTER, *_SORTED, "hint"}

Meaning = Callable[[exp.Column], exp.Expr | None]
"""What a mention means, as a new expression; None if it is not found."""


def resolve_names(tree: exp.Query, scopes: Scopes, schema: Schema) -> None:
    """Resolve the names of a tree, which is changed.

    Raises:
        Refusal: A name has no meaning, or several, or one that cannot be told.
    """
    queries = list(_from_inside(tree))
    name_relations(each for each in queries if isinstance(each, exp.Select))
    outermost = first_select(tree)
    for node in queries:
        if isinstance(node, exp.Select):
            _Select(node, scopes, schema).resolve(is_inside=node is not outermost)
        elif isinstance(node, exp.SetOperation):
            expand_order_by_all(node, FromColumns())
            _name_numbers(node)
        elif node.alias_column_names:
            rename_outputs(node)
    require_no_stars(tree)
    for dot in tree.find_all(exp.Dot):
        if isinstance(dot.expression, exp.Identifier):
            dot.expression.set("quoted", True)


def _from_inside(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The queries and definitions of a tree, each after all that it reads."""
    # No recursion: a chain of a thousand ORs is as deep.
    around = [(tree, _below(tree))]
    while around:
        here, rest = around[-1]
        child = next(rest, None)
        if child is not None:
            around.append((child, _below(child)))
            continue
        around.pop()
        if isinstance(here, exp.Query | exp.CTE):
            yield here


def _below(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes right below it, definitions and those of FROM before the rest."""
    if not isinstance(node, exp.Query):
        return iter(list(node.iter_expressions()))
    parts = {name: node.args.get(name) for name in _FROM} | node.args
    found = (e for value in parts.values() for e in (value if isinstance(value, list) else [value]))
    return iter([each for each in found if isinstance(each, exp.Expr)])


class _Select:
    """A SELECT that reads only resolved queries."""

    def __init__(self, select: exp.Select, scopes: Scopes, schema: Schema) -> None:
        self._select, self._scopes, self._schema = select, scopes, schema
        self._columns = FromColumns()
        self._outputs: dict[str, exp.Expr] = {}
        """Name in lower case → value, of the outputs resolved so far."""
        self._places: dict[str, int] = {}
        """Name in lower case → number in the SELECT list."""

    def resolve(self, *, is_inside: bool) -> None:
        """
        Args:
            is_inside: Whether the outputs of one name can get other names.
        """
        select = self._select
        require_distinct_aliases(select)
        self._resolve_from()
        self._columns = self._scopes.columns(select)
        flatten_joins(select)
        expand_stars(select, self._scopes, self._schema)
        self._resolve_list()
        if is_inside:
            _tell_apart(select, self._columns)
        for name, clause in list(select.args.items()):
            if name not in _OTHERS:
                self._put(clause, self._of_from)
        self._resolve_groups()
        self._put(select.args.get("having"), self._of_having(_keys_of(select)))
        self._put(select.args.get("qualify"), self._of_list)
        expand_order_by_all(select, self._columns)
        _name_numbers(select)
        for name in _SORTED:
            if (order := select.args.get(name)) is not None:
                self._resolve_order(order)

    def _resolve_from(self) -> None:
        clause = self._select.args.get("from_")
        if clause is not None:
            self._put(clause, lambda mention: None, exp.Join, exp.Lateral)
        elif joins := self._select.args.get("joins"):
            raise join_without_from(joins[0])
        for step in self._scopes.steps(self._select):
            self._resolve_step(step)
        rename_semi_join_sides(self._select)

    def _resolve_step(self, step: JoinStep) -> None:
        node = step.node
        relation = node.this if isinstance(node, exp.Join) else node
        if isinstance(relation, exp.Lateral):
            self._put(relation.this, lambda mention: among(step.before, mention))
        else:
            self._put(relation, _unseen(relation, step.before), exp.Join)
        seen = step.before.beside(step.added)
        self._put(node.args.get("on"), lambda mention: among(seen, mention))
        if is_by_name(node):
            same = [
                exp.EQ(this=a.value.copy(), expression=b.value.copy()) for a, b in step.merge_pairs
            ]
            node.set("on", exp.and_(*same, copy=False) if same else exp.true())
            node.set("using", None)
            node.set("method", None)

    def _resolve_list(self) -> None:
        select = self._select
        for place, item in enumerate(select.expressions):
            name = self._name_of(item) or exp.to_identifier(f"_col_{place}")
            self._put(item, self._of_list)
            output = select.expressions[place]
            if isinstance(output, exp.Subquery) and not output.output_name:
                output.set("alias", exp.TableAlias(this=name))
            elif not isinstance(output, exp.Alias | exp.Aliases | exp.Subquery):
                output.replace(implicit_output(output.copy(), name))
            output = select.expressions[place]
            if isinstance(output, exp.Alias):
                self._outputs[output.alias.lower()] = output.this
                self._places[output.alias.lower()] = place + 1

    def _resolve_groups(self) -> None:
        select = self._select
        self._put(select.args.get("group"), self._of_groups)
        for key in _keys_of(select):
            if _is_number(key.unnest()):
                value = _output_at(select, key.unnest()).unalias()
                # The number of a constant is as good a constant; in ROLLUP, it can be NULL.
                is_constant = isinstance(value, exp.CONSTANTS) or value.is_number
                stays = is_constant and isinstance(key.parent, exp.Group)
                key.replace(key.unnest() if stays else value.copy())
        expand_group_by_all(select, self._columns)

    def _resolve_order(self, order: exp.Expr) -> None:
        names = _distinct_names(self._select)

        def meaning(mention: exp.Column) -> exp.Expr | None:
            first, *fields = mention.parts
            output = exp.column(exp.to_identifier(first.name, quoted=True))
            named = with_fields(copy_with_position(output, first), fields)
            known = first.name.lower() in names
            own = mention.find_ancestor(exp.Order, exp.AggFunc) is order and not fields
            if known and own and not _is_inside_aggregate(mention):
                return named
            return self._of_from(mention) or (named if known else None)

        self._put(order, meaning)
        if self._select.args.get("group"):
            made = {each.unalias(): each.alias for each in self._select.selects}
            for item in order.expressions:
                name = made.get(item.this)
                if name is not None and name.lower() in names:
                    item.set("this", exp.column(name, quoted=True))

    def _name_of(self, item: exp.Expr) -> exp.Identifier | None:
        """The name of an output whose author gives it none with AS."""
        if (number := number_of(item)) is not None:
            return exp.to_identifier(self._columns.at(number, item).name, quoted=True)
        inner = item.unnest()
        part = inner.this if isinstance(inner, exp.Column) else inner.args.get("expression")
        if isinstance(inner, exp.Column | exp.Dot) and isinstance(part, exp.Identifier):
            return exp.to_identifier(part.name, quoted=part.quoted)
        return None

    # What a mention in a clause means:

    def _of_from(self, mention: exp.Column) -> exp.Expr | None:
        return among(self._columns, mention)

    def _of_output(self, mention: exp.Column) -> exp.Expr | None:
        value = self._outputs.get(mention.parts[0].name.lower())
        if value is None or (_has_aggregate(value) and _is_inside_aggregate(mention)):
            return None
        return with_fields(exp.paren(value), mention.parts[1:])

    def _of_list(self, mention: exp.Column) -> exp.Expr | None:
        return self._of_from(mention) or self._of_output(mention)

    def _of_groups(self, mention: exp.Column) -> exp.Expr | None:
        found, name = self._of_from(mention), mention.parts[0].name.lower()
        value = self._outputs.get(name)
        if found is not None or value is None or _has_aggregate(value):
            return found
        if isinstance(value, exp.Literal) or value.is_number:  # a number would be a place
            return exp.Literal.number(self._places[name])
        return self._of_output(mention)

    def _of_having(self, keys: list[exp.Expr]) -> Meaning:
        def meaning(mention: exp.Column) -> exp.Expr | None:
            column = self._of_from(mention)
            if column is not None and (column in keys or _is_inside_aggregate(mention)):
                return column
            return self._of_output(mention) or column

        return meaning

    def _put(
        self, clause: exp.Expr | list[exp.Expr] | None, meaning: Meaning, *until: type[exp.Expr]
    ) -> None:
        """Replace each mention in a clause by its meaning, without those below some kinds of
        nodes."""
        for part in clause if isinstance(clause, list) else [clause]:
            for mention in mentions(part, *until):
                found = meaning(mention)
                if found is None:
                    found = of_queries_around(mention, self._select, self._scopes)
                if found is None:
                    raise missing(mention, _why(mention, self._select), self._visible_names())
                around = mention.replace(found)
                simple = simplify_parens(around, DIALECT)
                if simple is not around:
                    around.replace(simple)

    def _visible_names(self) -> list[tuple[str, str]]:
        """The tables and columns that a mention may mean, the nearest first."""
        levels = levels_around(self._select, self._scopes)
        around = [columns.tables_and_names for _, columns in levels]
        return [*self._scopes.columns(self._select).tables_and_names, *chain(*around)]


def _unseen(relation: exp.Expr, before: FromColumns) -> Meaning:
    """The meaning of a mention in a relation that does not see those on its left."""
    called = "VALUES" if isinstance(relation, exp.Values) else "a table function"

    def meaning(mention: exp.Column) -> exp.Expr | None:
        if among(before, mention) is not None:
            raise Refusal(
                mention,
                f"{called} over columns of another table in FROM, without LATERAL",
                why="Spark shows it the tables before it only after LATERAL, in mode FULL too",
                fix="write FROM t, LATERAL explode(t.array) AS e(x)",
            )
        return None

    return meaning


def _why(mention: exp.Column, select: exp.Select) -> str:
    first, *others = (part.name for part in mention.parts)
    if others and first.lower() in map(str.lower, own_aliases(select)):
        return f'"{first}" has no column of this name'
    if others:
        return f'"{first}" is neither a table in FROM nor a column'
    return "no table in FROM has a column of this name"


def _keys_of(select: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY, those of ROLLUP and the like one by one."""
    group = select.args.get("group")
    nodes = group.walk(prune=lambda each: not isinstance(each, _AROUND_KEYS)) if group else ()
    return [each for each in nodes if not isinstance(each, _AROUND_KEYS)]


_AROUND_KEYS = (exp.Group, exp.GroupingSets, exp.Cube, exp.Rollup, exp.Tuple)


def _is_number(key: exp.Expr) -> bool:
    return isinstance(key, exp.Literal) and key.is_int


def _output_at(query: exp.Query, number: exp.Expr) -> exp.Expr:
    place, outputs = int(number.name), query.selects
    if not 1 <= place <= len(outputs):
        raise Mistake(
            number,
            f"there is no output column {place}",
            why=f"the last column of the SELECT list has the number {len(outputs)}",
            fix="write the number of a column of the SELECT list, or its name",
        )
    return outputs[place - 1]


def _name_numbers(query: exp.Query) -> None:
    """Write the name of an output for each number in ORDER BY."""
    order = query.args.get("order")
    names = _distinct_names(query)
    for item in order.expressions if order is not None else ():
        number = item.this.unnest()
        if _is_number(number):
            output = _output_at(query, number)
            known = output.alias_or_name.lower() in names
            item.set("this", exp.column(output.alias_or_name, quoted=True) if known else number)


def _distinct_names(query: exp.Query) -> set[str]:
    """The names of outputs that are mentioned without ambiguity, in lower case."""
    count = Counter(each.alias_or_name.lower() for each in query.selects)
    return {name for name, n in count.items() if n == 1}


def _tell_apart(select: exp.Select, columns: FromColumns) -> None:
    """Give outputs of one name other names; the first keeps it if all are the same column, see
    `from_columns`."""
    around = select.parent
    while isinstance(around, exp.SetOperation):  # which has the names of its first operand
        around = around.parent
    is_step = around is not None and keeps_tables(around)
    named = dict[str, list[exp.Expr]]()
    for item in select.expressions:
        named.setdefault(item.alias_or_name.lower(), []).append(item)
    for number, item in enumerate(select.expressions):
        name = item.alias_or_name.lower()
        first, *others = named[name]
        if others and not (item is first and all(_is_same(first, each) for each in others)):
            table = columns.table_of(item) if is_step else ""
            unique = distinct_name(number, table, name)
            item.replace(_rename_output(item, unique))


def _rename_output(item: exp.Expr, name: str) -> exp.Expr:
    """An output under another name, which its author gave it or not, as before."""
    value = item.unalias().copy()
    identifier = exp.to_identifier(name, quoted=True)
    return (
        implicit_output(value, identifier)
        if has_implicit_name(item)
        else exp.alias_(value, identifier)
    )


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two outputs are one column to Spark; AS makes another of it, and so does UNION."""
    select = one.parent
    alone = select is not None and not isinstance(select.parent, exp.SetOperation)
    plain = (
        isinstance(one.unalias(), exp.Column)
        and has_implicit_name(one)
        and has_implicit_name(other)
    )
    return alone and plain and one.unalias() == other.unalias()


def _has_aggregate(value: exp.Expr) -> bool:
    return next(calls(value), None) is not None


def _is_inside_aggregate(mention: exp.Column) -> bool:
    """Whether it stands inside an aggregate that is no window function."""
    here = mention.parent
    while here is not None and not isinstance(here, exp.Query):
        if is_call(here) and not is_of_window(here):
            return True
        here = here.parent
    return False
