"""Compare targets with their origin at the moment of a copy, which the targets first reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.replication.apply.row_digests import hashes
from dagster_streamtables.replication.lifecycle.data_transfer import apply_batch
from dagster_streamtables.replication.lifecycle.replication_report import TableCheck
from dagster_streamtables.replication.lifecycle.replication_run import ReplicationRun
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    CopySource,
    Operation,
    PublishedTable,
    TableChanges,
)
from dagster_streamtables.replication.target.target_columns import columns_of
from dagster_streamtables.replication.target.target_table import open_target
from dagster_streamtables.runtime.delta.arrow import np, pa, python_rows


def difference(
    expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The hashes that occur more often on one side, and how much more often: below 0 if they occur
    more often in `actual`."""
    hashed, place = np.unique(
        np.concatenate([np.zeros(0, np.uint64), *expected, *actual]), return_inverse=True
    )
    ours, theirs = np.split(place, [sum(map(len, expected))])
    counts = np.bincount(ours, minlength=len(hashed)) - np.bincount(theirs, minlength=len(hashed))
    differs = counts != 0
    return hashed[differs], counts[differs]


SAMPLE = 20
"""The maximum number of differing rows that are shown of each side."""


def check_tables(
    work: ReplicationRun, published: Mapping[str, PublishedTable], names: Iterable[str]
) -> dict[str, TableCheck]:
    """Compare published tables after a refresh has begun, and copied what was due; by target."""
    names = list(names)
    found: dict[str, TableCheck] = {}
    if there := [name for name in names if name in work.after]:
        with work.publisher.copy(work.slot, there) as copy:
            _reach(work, {name: copy.position(name) for name in there})
            for name in there:
                if name not in work.troubles:
                    one = _compare_table(work, published[name], copy)
                    found[one.target] = one
    for name in names:
        if name in work.troubles:  # it could not be brought to the moment
            progress = work.state.tables[name]
            found[progress.target] = TableCheck(
                name=name,
                target=progress.target,
                equal=False,
                position=progress.position or 0,
                version=0,
                rows=0,
                missing=0,
                unexpected=0,
                error=progress.error,
            )
    return found


def _reach(work: ReplicationRun, positions: Mapping[str, int]) -> None:
    """Apply changes up to positions, and no later ones to their tables."""
    while True:
        after = work.after
        left = {n: at for n, at in positions.items() if n in after and after[n] != at}
        if not left:
            return
        if any(after[name] > at for name, at in left.items()):
            raise ConflictingCommit(
                f'replication "{work.replication.name}" was refreshed during its comparison',
                why="another process applied changes behind the moment that is compared",
                fix="check again",
            )
        size = work.replication.max_rows
        batch = work.publisher.read(work.slot, after, work.state.confirmed, max_rows=size)
        apply_batch(work, _until(batch, positions))


def _until(batch: Batch, positions: Mapping[str, int]) -> Batch:
    tables = {
        name: _changes_until(changes, positions[name]) if name in positions else changes
        for name, changes in batch.tables.items()
    }
    end = {name: min(at, positions.get(name, at)) for name, at in batch.end.items()}
    kept = {name: each for name, each in tables.items() if each.positions}
    return replace(batch, tables=kept, end=end)


def _changes_until(changes: TableChanges, position: int) -> TableChanges:
    kept = sum(each <= position for each in changes.positions)
    transactions = changes.rows.column("transaction").to_numpy()
    rows = changes.rows.slice(0, int(np.searchsorted(transactions, kept)))
    return replace(changes, positions=changes.positions[:kept], rows=rows)


def _compare_table(work: ReplicationRun, table: PublishedTable, copy: CopySource) -> TableCheck:
    progress = work.state.tables[table.name]
    there = open_target(work.target(table.name), table)
    columns = columns_of(there.log, table)

    def origin() -> Iterator[pa.Table]:
        return map(columns.cast_rows, copy.rows(table.name))

    def target() -> Iterator[pa.Table]:
        return there.tables(columns.source_columns)

    expected, actual = [*map(hashes, origin())], [*map(hashes, target())]
    differing, counts = difference(expected, actual)
    missing, unexpected = counts > 0, counts < 0
    sample = _sample("missing", origin, differing[missing], counts[missing])
    sample += _sample("unexpected", target, differing[unexpected], -counts[unexpected])
    return TableCheck(
        name=table.name,
        target=progress.target,
        equal=not len(differing),
        position=copy.position(table.name),
        version=there.log.version,
        rows=sum(map(len, expected)),
        missing=int(counts[missing].sum()),
        unexpected=int(-counts[unexpected].sum()),
        sample=sample,
        note=_note(work, table),
    )


def _sample(
    kind: str, rows: Callable[[], Iterator[pa.Table]], wanted: np.ndarray, copies: np.ndarray
) -> list[dict[str, Any]]:
    """Some rows with these hashes, each once."""
    left = dict(zip(wanted.tolist(), copies.tolist(), strict=True))
    found: list[dict[str, Any]] = []
    for some in rows() if left else ():
        these = hashes(some)
        for index in np.flatnonzero(np.isin(these, wanted)).tolist():
            number = left.pop(int(these[index]), None)
            if number is not None:
                [row] = python_rows(some.slice(index, 1))
                found.append({**row, "__difference": kind, "__copies": number})
            if len(found) == SAMPLE:
                return found
    return found


def _note(work: ReplicationRun, table: PublishedTable) -> str:
    left_out = sorted(frozenset(Operation) - table.operations)
    if left_out:
        return f"its publications leave out {', '.join(left_out)}"
    if not work.replication.copy:
        return "the rows that were there at the start were not copied"
    return ""
