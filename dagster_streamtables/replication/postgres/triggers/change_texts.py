"""Rows of a log → the rows of `change_schema`, the changes of each row in their order.

A statement trigger comes after the statement, with all that its other triggers did. So the log has
what a trigger of a table does to the row that fired it before the change that fired it. But each
change has the row before and after, so the changes of a row are a chain. If those of the log are
none, there is one order that is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.model.replication_model import Operation, change_schema
from dagster_streamtables.replication.postgres.change_rows import take_or_null
from dagster_streamtables.replication.postgres.table_form import TableForm
from dagster_streamtables.replication.postgres.triggers.trigger_log import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    TRUNCATE,
    LogRows,
    TriggerShapes,
    columns_of,
)
from dagster_streamtables.replication.postgres.wal_reading import Piece
from dagster_streamtables.runtime.delta.arrow import np, pa, pc

Image = Hashable
"""A row, or None for none."""
Link = tuple[Image, Image]
"""The row before and after a change."""


@dataclass(frozen=True)
class Events:
    """Changes of one table, in the order of the log."""

    groups: np.ndarray
    """Between two changes of one group there is neither a truncate nor the end of a transaction."""
    statements: np.ndarray
    is_nested: np.ndarray
    """Whether a trigger made it."""
    old: np.ndarray
    new: np.ndarray
    """Rows; -1 for none."""


def in_order(
    events: Events,
    keys: np.ndarray,
    image: Callable[[int], Image],
    *,
    fires_others: bool,
    table: str,
) -> np.ndarray:
    """
    Args:
        keys: By row, a number that is equal if the identity is.
        image: A row's published values.
        fires_others: Whether the table has triggers of others, which may change it.

    Returns:
        The indices of the changes, in the order in which they happened.

    Raises:
        PublisherProblem: There is no such order, or several.
    """
    order = np.arange(len(events.old))
    for key, changes in _shared(events, keys):
        links = [_link(events, each, image) for each in changes]
        has_moved = any(_has_new_key(events, each, keys) for each in changes)
        if has_moved:
            links = _halves(events, changes, keys == key, links)
        if _is_chain(links):
            may_differ = fires_others and links[0][0] == links[-1][1]
            if not may_differ or not events.is_nested[changes].any():
                continue
            raise _order_error(table)
        found = None if has_moved else _chain(links)
        if found is None:
            raise _order_error(table)
        order[changes] = np.array(changes)[found]
    return order


def _order_error(table: str) -> PublisherProblem:
    return PublisherProblem(
        f'the order of the changes of a transaction to a row of "{table}" is unknown',
        why="a trigger changed the row that had fired it, and more than one order is possible",
        fix="copy the table again; with wal_level = logical the server tells the order",
    )


def _shared(events: Events, keys: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """The key and the changes of each row that several statements of one transaction changed."""
    has_old, has_new = np.flatnonzero(events.old >= 0), np.flatnonzero(events.new >= 0)
    changes = np.concatenate([has_old, has_new])
    rows = np.concatenate([keys[events.old[has_old]], keys[events.new[has_new]]])
    groups, statements = events.groups[changes], events.statements[changes]
    sort = np.lexsort((changes, rows, groups))
    changes, rows, groups, statements = (x[sort] for x in (changes, rows, groups, statements))
    starts = np.ones(len(changes), bool)
    starts[1:] = (rows[1:] != rows[:-1]) | (groups[1:] != groups[:-1])
    bounds = np.append(np.flatnonzero(starts), len(changes))
    differs = np.zeros(len(changes), bool)
    differs[1:] = ~starts[1:] & (statements[1:] != statements[:-1])
    for each in np.unique(np.searchsorted(bounds, np.flatnonzero(differs), "right") - 1).tolist():
        first, end = bounds[each], bounds[each + 1]
        yield int(rows[first]), np.unique(changes[first:end]).tolist()


def _link(events: Events, change: int, image: Callable[[int], Image]) -> Link:
    old, new = int(events.old[change]), int(events.new[change])
    return image(old) if old >= 0 else None, image(new) if new >= 0 else None


def _has_new_key(events: Events, change: int, keys: np.ndarray) -> bool:
    old, new = events.old[change], events.new[change]
    return bool(old >= 0 and new >= 0 and keys[old] != keys[new])


def _halves(
    events: Events, changes: Sequence[int], is_key: np.ndarray, links: list[Link]
) -> list[Link]:
    """The effect of changes, some of the identity, on the row of one key."""
    halves = []
    for change, (before, after) in zip(changes, links, strict=True):
        old, new = events.old[change], events.new[change]
        halves.append(
            (before if old >= 0 and is_key[old] else None,
             after if new >= 0 and is_key[new] else None)
        )  # fmt: skip
    return halves


def _is_chain(links: Sequence[Link]) -> bool:
    return all(one[1] == other[0] for one, other in pairwise(links))


def _chain(links: Sequence[Link]) -> list[int] | None:
    """The one order in which each link begins where the one before ends; None if several end
    otherwise."""
    begins, ends = [a for a, _ in links], [b for _, b in links]
    starts = [i for i, begin in enumerate(begins) if begins.count(begin) > ends.count(begin)]
    if not starts:
        return None
    # A walk that goes on as long as it can; where it leaves out links, these are a round trip.
    stack, path = [starts[0]], list[int]()
    left = set(range(len(links))) - {starts[0]}
    while stack:
        following = next((i for i in sorted(left) if begins[i] == ends[stack[-1]]), None)
        if following is None:
            path.append(stack.pop())
        else:
            left.discard(following)
            stack.append(following)
    path.reverse()
    return path if not left and _is_chain([links[i] for i in path]) else None


WORDS = {INSERT: "insert", AFTER: "update", DELETE: "delete", TRUNCATE: "truncate"}


def pieces_of(
    log: LogRows, positions: Sequence[int], shapes: TriggerShapes, after: Mapping[str, int]
) -> Iterator[tuple[str, Piece]]:
    """By table, in order; a table has several pieces if its columns change.

    Args:
        log: A part of a log.
        positions: The positions of all transactions.
        after: By table, the position of what was applied last.

    Raises:
        PublisherProblem: A value cannot be stored, or the order of changes is unknown.
    """
    ends = np.array(positions, np.int64)[log.places]
    by_name: dict[str, list[int]] = {}
    for oid, name in shapes.names.items():
        by_name.setdefault(name, []).append(oid)
    for name in by_name.keys() & after.keys():
        mine = np.isin(log.relations, by_name[name]) & (ends > after[name])
        chosen = np.flatnonzero(mine)
        if len(chosen):
            yield from ((name, piece) for piece in _pieces(log, chosen, shapes))


def _pieces(log: LogRows, chosen: np.ndarray, shapes: TriggerShapes) -> Iterator[Piece]:
    """While the columns stay as they are, the changes are one piece."""
    keys = np.stack([log.relations[chosen], log.shapes[chosen]], axis=1)
    kinds, kind_of = np.unique(keys, axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    forms = [shapes.form(*kind) for kind in kinds.tolist()]
    first_equal = (
        next(i for i, each in enumerate(forms) if each.has_columns_of(form)) for form in forms
    )
    numbers = np.array([*first_equal])[kind_of]
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(chosen)]
    for start, end in pairwise(bounds):
        part, form = chosen[start:end], forms[numbers[start]]
        texts = _texts(log, part, shapes, form)
        table = shapes.tables.get(int(log.relations[part[0]]))
        operations = frozenset(Operation) if table is None else table.operations
        fires_others = form.table.name in shapes.others
        rows = TextChanges(log, part, texts, form, operations, fires_others).rows()
        if len(rows):
            yield Piece(form, rows)


def _texts(
    log: LogRows, part: np.ndarray, shapes: TriggerShapes, form: TableForm
) -> dict[str, pa.Array]:
    """By published column, the text of each row."""
    has_row = log.ops[part] != TRUNCATE
    keys = np.stack([log.relations[part], log.shapes[part]], axis=1)
    found: dict[str, list[pa.Array]] = {each.name: [] for each in form.columns}
    places: list[np.ndarray] = []
    for relation, shape in np.unique(keys, axis=0).tolist():
        mine = np.flatnonzero(has_row & (keys == [relation, shape]).all(axis=1))
        columns = [each.name for each in shapes.shapes[relation, shape].columns]
        texts = columns_of(log.texts.take(pa.array(part[mine])), len(columns), form.table.name)
        places.append(mine)
        for name, text in zip(columns, texts, strict=True):
            if name in found:
                found[name].append(text)
    order = np.full(len(part), -1)
    at = np.concatenate(places)
    order[at] = np.arange(len(at))
    return {name: take_or_null(pa.concat_arrays(each), order) for name, each in found.items()}


@dataclass(frozen=True)
class TextChanges:
    """Rows of one table and one form."""

    log: LogRows
    part: np.ndarray
    """Their indices."""
    texts: Mapping[str, pa.Array]
    form: TableForm
    operations: frozenset[Operation]
    fires_others: bool
    """Whether others have triggers on the table."""

    def rows(self) -> pa.Table:
        schema = change_schema(self.form.table)
        kinds, old, new, at = self._events
        columns = [
            pa.array([WORDS[op] for op in kinds.tolist()], pa.string()),
            pa.array(self.log.places[self.part][at], pa.int32()),
            self._struct(self._old_row_indices(kinds, old, new), [*schema.field("old").type]),
            self._struct(new, [*schema.field("new").type]),
            pa.nulls(len(at), pa.list_(pa.int16())),
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    @cached_property
    def _events(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """For each published change its kind, its old and its new row (-1 for none), and one that
        is its own. A filter may show only one of both."""
        at, old, new = self._ordered
        kinds = self.log.ops[self.part][at].copy()
        words = [op for op, word in WORDS.items() if word in self.operations]
        is_published = np.isin(kinds, words)
        shown = np.append(self.log.shown[self.part], False)
        old, new = np.where(shown[old], old, -1), np.where(shown[new], new, -1)
        is_update = kinds == AFTER
        kinds[is_update & (old < 0)] = INSERT
        kinds[is_update & (new < 0)] = DELETE
        kept = is_published & ((old >= 0) | (new >= 0) | (kinds == TRUNCATE))
        return kinds[kept], old[kept], new[kept], at[kept]

    @cached_property
    def _ordered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each change the row where it is, its old row and its new one."""
        ops = self.log.ops[self.part]
        at = np.flatnonzero(ops != BEFORE)
        kinds = ops[at]
        new = np.where(np.isin(kinds, (INSERT, AFTER)), at, -1)
        old = np.where(kinds == DELETE, at, np.where(kinds == AFTER, at - 1, -1))
        if self.form.table.identity is None:  # equal rows are counted, in whatever order
            return at, old, new
        places, statements = self.log.places[self.part][at], self.log.statements[self.part][at]
        starts = np.append(True, (np.diff(places) != 0) | (kinds[1:] == TRUNCATE))
        events = Events(
            groups=np.cumsum(starts),
            statements=statements,
            is_nested=self.log.depths[self.part][at] > 1,
            old=old,
            new=new,
        )
        order = in_order(
            events,
            self._keys,
            self._image,
            fires_others=self.fires_others,
            table=self.form.table.name,
        )
        return at[order], old[order], new[order]

    def _image(self, row: int) -> tuple[bytes | None, ...]:
        return tuple(text[row].as_py() for text in self.texts.values())

    @cached_property
    def _keys(self) -> np.ndarray:
        """By row, a number that is equal if the identity is; 0 for none."""
        parts = [
            pc.if_else(text.is_null(), b"n", pc.binary_join_element_wise(b"t", text, b""))
            for text in (self.texts[name] for name in self.form.table.key_columns)
        ]
        lengths = [pc.binary_length(each).cast("string").cast("binary") for each in parts]
        joined = pc.binary_join_element_wise(*lengths, *parts, b",")
        return joined.dictionary_encode().indices.to_numpy()

    def _old_row_indices(self, kinds: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The old rows, but for updates that leave the identity as it is."""
        if self.form.table.identity is None:
            return old
        stays = (kinds == AFTER) & (self._keys[old] == self._keys[new])
        return np.where(stays, -1, old)

    def _struct(self, rows: np.ndarray, fields: list[pa.Field]) -> pa.Array:
        names = {each.name for each in fields}
        is_there = rows >= 0
        arrays = [
            each.values(take_or_null(self.texts[each.name], rows[is_there]))
            for each in self.form.columns
            if each.name in names
        ]
        found = pa.StructArray.from_arrays(arrays, fields=fields)
        return take_or_null(found, np.where(is_there, np.cumsum(is_there) - 1, -1))
