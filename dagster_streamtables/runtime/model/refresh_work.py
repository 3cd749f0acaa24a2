"""What a refresh of a stream table would have to do.

The sensor, a worker, automation conditions and the status call the same function, which looks at
what `refresh_decisions` looks at. It compares what the table stores, never what a caller remembers;
and commits, never their numbers: a table that is rewritten each night has the same number each
night.

Definitions are compared by fingerprints, `<meaning>.<layout>`. Another meaning is another query:
the stored rows are wrong. Another layout, such as the hidden columns that a change of mode adds,
leaves the rows right; they only cannot be updated by their change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dagster_streamtables.compiler import Plan, QueryPlan, Text
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_state import (
    SourceState,
    StreamTableState,
    TableInStorage,
)

REDEFINED = "its definition changed"


@dataclass(frozen=True)
class HeadWithState:
    """The end of a stream table's log, and its newest state."""

    head: Head
    state: StreamTableState
    committed: int
    """The version with `state`."""
    disturbed: bool
    """Whether another writer changed rows after that, as far as commits tell; see `read_state`."""


@dataclass(frozen=True)
class RefreshWork:
    """The work; none, without reasons."""

    reasons: tuple[str, ...] = ()
    """Each a clause, such as `its definition changed`."""
    redefined: bool = False
    """Whether its rows are those of another definition."""


def refresh_work(
    stored: HeadWithState | None,
    meaning: str,
    newest: Mapping[str, Head | None],
    seen: Mapping[str, Head] | None = None,
) -> RefreshWork:
    """The work of a refresh of a table.

    Args:
        stored: The table; None if it was never refreshed.
        meaning: The meaning of its declaration.
        newest: The newest commit of each source; None for one that does not exist.
        seen: Commits of sources, and of the table itself, in which a later refresh found nothing to
            do, so that it did not commit.
    """
    if stored is None:
        return RefreshWork(("it was never refreshed",))
    state, seen = stored.state, seen or {}
    read = {name: Head(each.version, each.commit) for name, each in state.sources.items()}
    moved = [
        name
        for name, head in newest.items()
        if head is None or head not in (read.get(name), seen.get(name))
    ]
    redefined = meaning_in(state.query) not in ("", meaning)
    older = not (state.compared and meaning_in(state.query))
    disturbed = stored.disturbed and seen.get(state.table) != stored.head
    reasons = [
        *([REDEFINED] if redefined else []),
        *(["an older version wrote it"] if older else []),
        *([f"somebody else changed its rows after version {stored.committed}"] * disturbed),
        *(_source_reason(name, newest[name], state.sources.get(name)) for name in moved),
    ]
    return RefreshWork(tuple(reasons), redefined)


def _source_reason(name: str, head: Head | None, seen: SourceState | None) -> str:
    if head is None:
        return f'"{name}" does not exist'
    if seen is None:
        return f'it never read "{name}"'
    if head.version <= seen.version:
        return f'"{name}" was rewritten, and is at version {head.version}'
    return f'"{name}" is at version {head.version}, and it reflects {seen.version}'


def fingerprint_of(table: StreamTable, plan: Plan | None) -> str:
    """The fingerprint of a declaration that is maintained by a plan; by None, in full."""
    layout = _layout(plan)
    if isinstance(plan, QueryPlan):
        layout += plan.newer_rules
        layout += plan.counted
        # Older versions did not know the types below stars, and translated without them.
        layout += ("types below stars",) if table.needs_translation and plan.has_stars_below else ()
    return f"{table.meaning}.{_digest(layout)}"


def by_text(text: Text | None, plan: Plan | None, zone: str) -> str:
    """The fingerprint that states of older versions have, and those of intermediate tables.

    An intermediate table has no text; its name depends on its contents.
    """
    query = text.former_normal if text is not None else plan.name if plan is not None else ""
    rules = plan.newer_rules if isinstance(plan, QueryPlan) else ()
    return _digest((query, *_layout(plan), zone, *rules))


def meaning_in(fingerprint: str) -> str:
    """The meaning in a fingerprint; empty in one by text."""
    meaning, dot, _ = fingerprint.partition(".")
    return meaning if dot else ""


def same_meaning(one: str, other: str) -> bool:
    """Whether two fingerprints are of one query, however its rows are stored."""
    if meaning_in(one) and meaning_in(other):
        return meaning_in(one) == meaning_in(other)
    return one == other


def with_present_names(
    table: StreamTable, text: Text, plan: Plan | None, stored: TableInStorage
) -> TableInStorage:
    """A table that an older version stored, with present fingerprints instead of former ones."""
    last = stored.refreshed
    if last is None or meaning_in(last.state.query) or table.changed_at:
        return stored  # an older version stored no column `changed_at`
    plans = (plan, plan.whole if plan is not None else None, None)
    names = {by_text(text, p, table.session_timezone): fingerprint_of(table, p) for p in plans}
    state = last.state.with_fingerprints(names)
    return replace(stored, refreshed=replace(last, state=state))


def _layout(plan: Plan | None) -> tuple[str, ...]:
    if plan is None:
        return "", "full"
    return ",".join(plan.stored_columns), plan.strategy_kind


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]
