"""The columns, or else a number, by which windows around windows order rows that tie.

    SELECT *, SUM(is_new) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS session
    FROM (SELECT *, t - LAG(t) OVER (PARTITION BY k ORDER BY t) > 30 AS is_new FROM events) AS e

Both windows must take rows that tie in one order, as in plain Spark, which sorts them once:
`is_new` belongs to the first of two events at the same time. So the outer window orders them first
by the columns that the inner one ordered by, as far as the inner SELECT list has them, and then by
its own (`TieColumns`).

Copies of an event differ in `is_new` alone. Ordered by it, they would begin a session before their
first event. So the inner SELECT gets ``ROW_NUMBER() OVER (PARTITION BY k ORDER BY t, …) AS
st_nth_0``; the outer window orders rows that tie by it, and the star around it omits it
(`TieNumber`). This needs a single way from the outer SELECT to the inner one, through SELECTs over
one relation each that keep copies apart, and one order in the inner one. Otherwise the columns
decide alone, and ties of copies remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.ordered_aggregates import Insertion, ordered_windows
from dagster_streamtables.compiler.analyze.storable_types import UNCOMPARABLE, first_kind
from dagster_streamtables.compiler.operators.sql_builders import type_of
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import span
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.strict_parser import span_of_order
from dagster_streamtables.compiler.text.table_mentions import definition_of, own_columns
from dagster_streamtables.compiler.text.token_edits import SelectList, opening_around

Key = tuple[str, str]


@dataclass(frozen=True)
class TieColumns:
    """The columns by which windows tell rows apart, through SELECTs in FROM."""

    aliases: frozenset[str]

    def of(self, select: exp.Select) -> list[exp.Column]:
        """The columns, the most significant first. Rows that agree on them are the same."""
        given = [found for _, found in self._columns_from_below(select)]
        own = [each for each in _sortable_columns(select) if _key(each) not in {*map(_key, given)}]
        if select.parent is not None:
            shown = _outputs(select)
            own.sort(key=lambda each: _key(each) not in shown)
        return [*given, *own]

    def remaining_in(self, tree: exp.Query) -> Iterator[tuple[exp.Select, list[str]]]:
        """The SELECTs below another with windows, each with the columns that this one lacks."""
        for select in filter(ordered_windows, tree.find_all(exp.Select)):
            found = (each for one in relations_of(select) for each in self._tie_columns_of(one))
            for inner in {id(each): each for each, _ in found}.values():
                shown = _outputs(inner)
                lacks = [each.name for each in self.of(inner) if _key(each) not in shown]
                yield inner, lacks

    def _columns_from_below(self, select: exp.Select) -> Iterator[tuple[exp.Select, exp.Column]]:
        """The columns that told rows apart below, under their names in this SELECT."""
        relations = relations_of(select)
        for relation in relations:
            alias = relation.alias_or_name
            if len(relations) > 1 and alias.lower() not in self.aliases:
                continue
            for inner, below in self._tie_columns_of(relation):
                shown = _outputs(inner)
                names = relation.alias_column_names or inner.named_selects
                for each in below:
                    if _key(each) in shown:
                        name = names[shown[_key(each)]]
                        made = exp.column(name, table=alias, quoted=True)
                        made.type = type_of(each)
                        yield inner, made

    def _tie_columns_of(self, relation: exp.Expr) -> Iterator[tuple[exp.Select, list[exp.Column]]]:
        inner = select_of_relation(relation)
        if inner is None or has_groups(inner):
            return
        if ordered_windows(inner):
            yield inner, self.of(inner)
        else:
            given = [found for _, found in self._columns_from_below(inner)]
            if given:
                yield inner, given


def is_unsortable(node: exp.Expr) -> bool:
    """Whether values of its type cannot be sorted."""
    return first_kind(node.type, UNCOMPARABLE) is not None


def _sortable_columns(select: exp.Select) -> list[exp.Column]:
    joins = select.args.get("joins") or []
    unseen = {join.alias_or_name for join in joins if join.kind in HALF}
    told = (c for c in own_columns(select) if c.table not in unseen and not is_unsortable(c))
    return list({_key(each): each for each in told}.values())


def _key(column: exp.Column) -> Key:
    return column.table, column.name


def _outputs(select: exp.Select) -> dict[Key, int]:
    """The columns that a SELECT returns as they are, with their places."""
    outputs = enumerate(each.unalias() for each in select.selects)
    return {_key(each): place for place, each in outputs if isinstance(each, exp.Column)}


def relations_of(select: exp.Select) -> list[exp.Expr]:
    """The relations that a SELECT joins."""
    clause = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return [clause.this, *joined] if clause is not None else joined


def select_of_relation(relation: exp.Expr) -> exp.Select | None:
    """The SELECT of a subquery in FROM, or of a common table expression."""
    query = relation.this if isinstance(relation, exp.Subquery) else None
    definition = definition_of(relation) if isinstance(relation, exp.Table) else None
    if definition is not None:
        clause = definition.parent
        query = definition.this if isinstance(clause, exp.With) and not clause.recursive else query
    return query if isinstance(query, exp.Select) else None


NUMBER = "st_nth_"
_LOSING = ("distinct", "limit", "offset")
"""Clauses that merge copies, or take some of them."""


@dataclass(frozen=True)
class TieNumber:
    """The number that one SELECT computes, and another one orders its windows by."""

    inner: exp.Select
    name: str
    table: str
    """The relation that has it in the outer SELECT."""
    window: str
    """The inner window, up to the last key of its order."""
    at: int
    """The end of the inner SELECT list."""
    around: tuple[Insertion, ...]
    """What hands the number on to the outer SELECT, and keeps it from its readers."""

    def insertions(self, keys: Sequence[str]) -> Iterator[Insertion]:
        """The number, by a window of further keys, and its way out."""
        window = ", ".join([self.window, *keys])
        yield Insertion(self.at, f", ROW_NUMBER() OVER ({window}) AS {self.name} ")
        yield from self.around


def tie_numbers(text: Text, tree: exp.Query) -> dict[int, TieNumber]:
    """The numbers of a query, by the id of the SELECT whose windows go by them."""
    finder = _Finder(text)
    found: dict[int, TieNumber] = {}
    for select in filter(ordered_windows, tree.find_all(exp.Select)):
        number = finder.number(select, f"{NUMBER}{len(found)}")
        if number is not None:
            found[id(select)] = number
    return found


@dataclass(frozen=True)
class _Finder:
    text: Text

    def number(self, outer: exp.Select, name: str) -> TieNumber | None:
        way = [] if has_groups(outer) else self._way(outer)
        windows = {self._window(meant) for _, meant in ordered_windows(way[-1])} if way else set()
        lists = [self._list(select) for select in (outer, *way)]
        known = [each for each in lists if each is not None and not each.has_stars_inside]
        window = windows.pop() if len(windows) == 1 else None
        if window is None or len(known) < len(lists):
            return None
        first, *between, last = known
        passing = [each for each in between if not each.stars]
        around = [Insertion(at, words) for at, _, words in first.without(name)]
        around += [Insertion(each.end, f", {name} ") for each in passing]
        table = relations_of(outer)[0].alias_or_name
        return TieNumber(way[-1], name, table, window, last.end, tuple(around))

    def _way(self, outer: exp.Select) -> list[exp.Select]:
        """The SELECTs from the one below to that with windows; none if there is no single way."""
        way = list[exp.Select]()
        here = outer
        while not way or not ordered_windows(here):
            relations = relations_of(here)
            below = select_of_relation(relations[0]) if len(relations) == 1 else None
            if below is None or here.args.get("laterals") or not self._is_alone(relations[0]):
                return []
            if has_groups(below) or any(map(below.args.get, _LOSING)):
                return []
            way.append(below)
            here = below
        return way

    def _is_alone(self, relation: exp.Expr) -> bool:
        """Whether nothing else reads the relation, nor does anything count its columns."""
        name = relation.alias_or_name if isinstance(relation, exp.Subquery) else relation.name
        tree = self.text.tree
        counted = [each for each in tree.find_all(exp.TableAlias) if each.args.get("columns")]
        if name.lower() in (each.name.lower() for each in counted):
            return False
        if isinstance(relation, exp.Subquery):
            return True
        names = [each.alias.lower() for each in tree.find_all(exp.CTE)]
        mentions = [each for each in tree.find_all(exp.Table) if each.name.lower() == name.lower()]
        return names.count(name.lower()) == len(mentions) == 1

    def _window(self, meant: exp.Expr) -> str | None:
        """The words of a window with an order, up to the last key."""
        order = meant.args.get("order")
        known = span_of_order(order) if order is not None else None
        if known is None:
            return None
        begin = sum(each.start < known[0] for each in self.text.tokens)
        opening = opening_around(self.text.tokens, begin)
        assert opening is not None, "a window with an order has parentheses"
        return self.text.sql[self.text.tokens[opening].end + 1 : known[1]].strip()

    def _list(self, select: exp.Select) -> SelectList | None:
        """Where the list of a SELECT stands: one of its windows, or its relation, has a place."""
        relation = relations_of(select)[0]
        below = select_of_relation(relation) if isinstance(relation, exp.Subquery) else None
        calls = [call.this for call, _ in ordered_windows(select)]
        found = next(filter(None, map(span, calls or [relation.this])), None)
        tokens = self.text.tokens
        if not calls and below is not None:
            inside = self._list(below)
            return None if inside is None else SelectList.around(tokens, inside.select)
        at = next((i for i, each in enumerate(tokens) if found and each.start >= found[0]), None)
        return None if at is None else SelectList.around(tokens, at)
