"""A number for each row that a window has put into order, by which the windows around it go.

    SELECT *, SUM(is_new) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS session
    FROM (SELECT *, t - LAG(t) OVER (PARTITION BY k ORDER BY t) > 30 AS is_new FROM events) AS e

Copies of an event differ in `is_new` alone, which belongs to the first of them: ordered by it, they
would begin a session before their first event. Plain Spark sorts them once. So the inner SELECT
gets ``ROW_NUMBER() OVER (PARTITION BY k ORDER BY t, …) AS st_nth_0``, by which the outer window
orders rows that tie, and the star around it leaves it out.

It needs one way from the outer SELECT to the inner one, through SELECTs over one relation each that
keep copies apart, and one order in the inner one. Else `TieColumns` orders, and copies stay open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.ordered_aggregates import Insertion
from dagster_streamtables.compiler.analyze.tie_columns import derived, relations_of
from dagster_streamtables.compiler.text.aggregate_calls import is_grouped
from dagster_streamtables.compiler.text.clauses import SelectList, deeper
from dagster_streamtables.compiler.text.places import span
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.window_places import end_of_order, word_of_order

Ordered = Callable[[exp.Select], Sequence[tuple[exp.Expr, exp.Expr]]]
"""The calls of a SELECT over windows that tell apart rows that tie, and these windows."""
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
        """The number, and its way out.

        Args:
            keys: Further keys of the inner window.
        """
        window = ", ".join([self.window, *keys])
        yield Insertion(self.at, f", ROW_NUMBER() OVER ({window}) AS {self.name} ")
        yield from self.around


def tie_numbers(text: Text, tree: exp.Query, ordered: Ordered) -> dict[int, TieNumber]:
    """The numbers of a query, by the id of the SELECT whose windows go by them.

    Args:
        text: The query.
        tree: Its tree, with the table of every column known.
        ordered: What a SELECT orders.
    """
    finder = _Finder(text, ordered)
    found: dict[int, TieNumber] = {}
    for select in filter(ordered, tree.find_all(exp.Select)):
        number = finder.number(select, f"{NUMBER}{len(found)}")
        if number is not None:
            found[id(select)] = number
    return found


@dataclass(frozen=True)
class _Finder:
    text: Text
    ordered: Ordered

    def number(self, outer: exp.Select, name: str) -> TieNumber | None:
        way = [] if is_grouped(outer) else self._way(outer)
        windows = {self._window(meant) for _, meant in self.ordered(way[-1])} if way else set()
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
        while not way or not self.ordered(here):
            relations = relations_of(here)
            below = derived(relations[0]) if len(relations) == 1 else None
            if below is None or here.args.get("laterals") or not self._is_alone(relations[0]):
                return []
            if is_grouped(below) or any(map(below.args.get, _LOSING)):
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
        begin = word_of_order(order, self.text) if order is not None else None
        if begin is None:
            return None
        depth = 0
        for token in reversed(self.text.tokens[:begin]):
            depth += deeper(token)
            if depth > 0:
                return self.text.sql[token.end + 1 : end_of_order(begin, self.text)].strip()
        return None

    def _list(self, select: exp.Select) -> SelectList | None:
        """Where the list of a SELECT stands: one of its windows, or its relation, has a place."""
        relation = relations_of(select)[0]
        below = derived(relation) if isinstance(relation, exp.Subquery) else None
        calls = [call.this for call, _ in self.ordered(select)]
        found = next(filter(None, map(span, calls or [relation.this])), None)
        tokens = self.text.tokens
        if not calls and below is not None:
            inside = self._list(below)
            return None if inside is None else SelectList.around(tokens, inside.select)
        at = next((i for i, each in enumerate(tokens) if found and each.start >= found[0]), None)
        return None if at is None else SelectList.around(tokens, at)
