"""Fingerprints of definitions: what the rows of a table mean, and how they are stored.

A fingerprint is `<meaning>.<layout>`. Another meaning is another query: the stored rows are wrong.
Another layout, such as the hidden columns that a change of mode adds, leaves the rows right; they
only cannot be updated by their change.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from dagster_streamtables.compiler import Plan, QueryPlan, Text
from dagster_streamtables.runtime.model.state import TableInStorage
from dagster_streamtables.runtime.model.stream_table import StreamTable


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
    """A table that an older version stored, with the present fingerprints of its definition in
    place of former ones."""
    last = stored.refreshed
    if last is None or meaning_in(last.state.query) or table.changed_at:
        return stored  # an older version stored no column `changed_at`
    plans = (plan, plan.whole if plan is not None else None, None)
    names = {by_text(text, p, table.session_timezone): fingerprint_of(table, p) for p in plans}
    state = replace(
        last.state,
        query=names.get(last.state.query, last.state.query),
        whole=names.get(last.state.whole, last.state.whole),
        refused={names.get(known, known): why for known, why in last.state.refused.items()},
    )
    return replace(stored, refreshed=replace(last, state=state))


def _layout(plan: Plan | None) -> tuple[str, ...]:
    if plan is None:
        return "", "full"
    return ",".join(plan.stored_columns), plan.strategy_kind


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]
