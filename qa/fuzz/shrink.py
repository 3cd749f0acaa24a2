"""A failure made small: parts of the query and of the story are taken out while it still fails.

A candidate that the engine does not run, or that the compiler refuses, is no failure and is not
taken, so a step may propose what makes no sense. Kinds are kept: an expression is replaced by one
of its kind, so that what DuckDB accepts Spark does too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from qa.fuzz.changes import Row, Story
from qa.fuzz.forms import LITERALS
from qa.fuzz.outcome import Engine, Outcome, Trial, Verdict
from qa.fuzz.queries import Group, Select
from qa.fuzz.relations import Derived, Pivoted, Table
from qa.fuzz.schema import SOURCES, VALUES
from qa.fuzz.tree import Column, Expr, Literal, Node, Query, Relation, walk


def shrink(trial: Trial, fails: Callable[[Trial], bool], *, seconds: float = 60) -> Trial:
    """The smallest trial found that still fails."""
    end = time.monotonic() + seconds
    for candidates in _steps() * 2:
        trial = _exhaust(trial, candidates, fails, end)
    return trial


def same_failure(engine: Engine, first: Outcome) -> Callable[[Trial], bool]:
    """Whether a trial fails as the first did: an error for an error, other rows for other rows."""
    rows = first.detail.startswith(("window", "full refresh"))
    kind = first.detail[:4] if rows else first.detail.split('"')[0].split("'")[0][:60]

    def fails(trial: Trial) -> bool:
        found = engine.run(trial)
        return found.verdict is Verdict.FAILED and found.detail.startswith(kind)

    return fails


def _steps() -> list[Callable[[Trial], Iterator[Trial]]]:
    return [fewer_windows, fewer_rows, smaller_queries, fewer_rows, plainer_values]


def _exhaust(
    trial: Trial,
    candidates: Callable[[Trial], Iterator[Trial]],
    fails: Callable[[Trial], bool],
    end: float,
) -> Trial:
    """Take what still fails, and propose again, until nothing does."""
    seen = {(trial.text, trial.story)}
    again = True
    while again and time.monotonic() < end:
        again = False
        for each in candidates(trial):
            if time.monotonic() > end:
                return trial
            if (each.text, each.story) in seen or not each.story.possible():
                continue
            seen.add((each.text, each.story))
            if fails(each):
                trial, again = each, True
                break
    return trial


def fewer_windows(trial: Trial) -> Iterator[Trial]:
    windows = trial.story.windows
    for i, window in enumerate(windows):
        earlier = tuple(row for each in windows[:i] for row in each.rows)
        yield replace(trial, story=Story(_settled(trial.story.before, earlier), (window,)))
    for i in range(len(windows)):
        if len(windows) > 1:
            less = (*windows[:i], *windows[i + 1 :])
            yield replace(trial, story=replace(trial.story, windows=less))
    for i, window in enumerate(windows):
        for plain in (replace(window, told=True), replace(window, gross=False)):
            if plain != window:
                told = (*windows[:i], plain, *windows[i + 1 :])
                yield replace(trial, story=replace(trial.story, windows=told))


def fewer_rows(trial: Trial) -> Iterator[Trial]:
    story = trial.story
    used = {each.name for each in walk(trial.query) if isinstance(each, Table)}
    kept = tuple(row for row in story.before if row.table in used)
    windows = tuple(
        replace(w, rows=tuple(r for r in w.rows if r.table in used)) for w in story.windows
    )
    yield replace(trial, story=Story(kept, windows))
    for i, window in enumerate(story.windows):
        for rows in _without(window.rows):
            less = (*story.windows[:i], replace(window, rows=rows), *story.windows[i + 1 :])
            yield replace(trial, story=replace(story, windows=less))
    for rows in _without(story.before):
        yield replace(trial, story=replace(story, before=rows))


def plainer_values(trial: Trial) -> Iterator[Trial]:
    """Every value the first of its type, everywhere where it is that value in that column."""
    later = (row for window in trial.story.windows for row in window.rows)
    rows = {*trial.story.before, *later}
    for table in sorted({row.table for row in rows}):
        for place, type_ in enumerate(SOURCES[table].values()):
            for value in VALUES[type_][1:]:
                yield replace(trial, story=_exchanged(trial.story, table, place, value, type_))


def _exchanged(story: Story, table: str, place: int, value: str, type_: str) -> Story:
    def plain(row: Row) -> Row:
        if row.table != table or row.values[place] != value:
            return row
        values = (*row.values[:place], VALUES[type_][0], *row.values[place + 1 :])
        return replace(row, values=values)

    windows = tuple(replace(w, rows=tuple(map(plain, w.rows))) for w in story.windows)
    return Story(tuple(map(plain, story.before)), windows)


def smaller_queries(trial: Trial) -> Iterator[Trial]:
    for query in smaller(trial.query):
        if isinstance(query, Query) and _groups_by_columns(query):
            try:
                yield Trial.of(query, trial.story)
            except (IndexError, KeyError, ValueError):
                # A key, a column or an alias went whose place another part of the text needs.
                continue


def _groups_by_columns(query: Query) -> bool:
    """Whether every key names a column: engines disagree on what a literal key is."""
    keys = (key for each in walk(query) if isinstance(each, Group) for key in each.keys)
    return all(any(isinstance(each, Column) for each in walk(key)) for key in keys)


def smaller(node: Node) -> Iterator[Node]:
    """The node with one thing in it less, the largest first."""
    yield from _instead(node)
    for field in fields(node):  # type: ignore[arg-type]
        value: Any = getattr(node, field.name)
        if field.name in node.droppable:
            least = node.droppable[field.name]
            if isinstance(value, tuple):
                parts = _without(value) if len(value) > least else ()
                yield from (replace(node, **{field.name: p}) for p in parts if len(p) >= least)  # type: ignore[type-var]
            elif value is not None and value is not False:
                nothing = False if value is True else None
                yield replace(node, **{field.name: nothing})  # type: ignore[type-var]
        if isinstance(value, Node):
            for each in smaller(value):
                yield replace(node, **{field.name: each})  # type: ignore[type-var]
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                if isinstance(part, Node) and is_dataclass(part):
                    for each in smaller(part):
                        whole = (*value[:i], each, *value[i + 1 :])
                        yield replace(node, **{field.name: whole})  # type: ignore[type-var]


def _instead(node: Node) -> Iterator[Node]:
    """What may stand in the place of the whole node."""
    if isinstance(node, Query):
        below = [each for each in walk(node) if isinstance(each, Query) and each is not node]
        yield from below
        if isinstance(node, Select) and node.joins:
            yield replace(node, start=node.joins[0].relation, joins=node.joins[1:])
    elif isinstance(node, Expr):
        for each in walk(node):
            if isinstance(each, Expr) and each is not node and each.kind is node.kind:
                yield each
        plain = Literal(node.kind, LITERALS[node.kind][0])
        if not isinstance(node, Literal):
            yield plain
    elif isinstance(node, Derived | Pivoted | Relation) and not isinstance(node, Table):
        for each in walk(node):
            if isinstance(each, Table):
                yield replace(each, alias=node.alias)


def _without(parts: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Halves first, then one less."""
    half = len(parts) // 2
    if half:
        yield parts[:half]
        yield parts[half:]
    for i in range(len(parts)):
        yield (*parts[:i], *parts[i + 1 :])


def _settled(before: tuple[Row, ...], earlier: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows that are there after earlier windows, as if they had been there from the start."""
    rows = list(before)
    for row in earlier:
        if row.sign > 0:
            rows.append(replace(row, sign=1))
        else:
            gone = replace(row, sign=1)
            if gone in rows:
                rows.remove(gone)
    return tuple(rows)
