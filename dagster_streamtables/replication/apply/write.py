"""Write an effect to a target, as one commit of delta-rs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.apply.effect import Effect
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_ranges import condition_on
from dagster_streamtables.runtime.delta.quote import delta_rs_name

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties

_INSERT, _UPDATE, _DELETE = range(3)


def write(log: TableLog, effect: Effect, properties: CommitProperties) -> None:
    """Commit an effect on the version that a log is at."""
    from deltalake import write_deltalake

    table = log.to_write()
    if effect.replaces and not effect.came.num_rows and log.adds.num_rows:
        # Without a condition, as by TRUNCATE, so that who reads the target can tell. Of an empty
        # table it would be no commit.
        table.delete(commit_properties=properties)
    elif effect.replaces and effect.came.num_rows:
        rows = whole_rows(log, effect.came)
        write_deltalake(table, rows, mode="overwrite", commit_properties=properties)
    elif effect.changed.num_rows or effect.gone.num_rows:
        _merge(table, log, effect, properties)
    elif effect.came.num_rows:
        rows = whole_rows(log, effect.came)
        write_deltalake(table, rows, mode="append", commit_properties=properties)
    else:
        table.create_write_transaction([], "append", table.schema(), commit_properties=properties)


def whole_rows(log: TableLog, rows: pa.Table) -> pa.Table:
    """Rows in all columns of the target, NULL in those that they have not."""
    import pyarrow as pa

    columns = [
        rows.column(field.name)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in log.arrow_schema
    ]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, log.arrow_schema, strict=True)],
        schema=log.arrow_schema,
    )


def _merge(table: Any, log: TableLog, effect: Effect, properties: CommitProperties) -> None:
    """Insert, update and delete at once.

    Rows that came match nothing, so that a key can leave one row and come with another.
    """
    match, values = effect.changed.column_names, effect.came.column_names
    wrote = effect.values.column_names
    merge = table.merge(
        _source(log, effect),
        _all(_conditions(effect, match)),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
    )
    if effect.changed.num_rows:
        updates = {delta_rs_name(n): _new(n, i, effect) for i, n in enumerate(values) if n in wrote}
        merge = merge.when_matched_update(updates, predicate=f"s.op = {_UPDATE}")
    if effect.gone.num_rows:
        merge = merge.when_matched_delete(predicate=f"s.op = {_DELETE}")
    if effect.came.num_rows:
        inserts = {delta_rs_name(name): f"s.v{i}" for i, name in enumerate(values)}
        merge = merge.when_not_matched_insert(inserts, predicate=f"s.op = {_INSERT}")
    merge.execute()


def _conditions(effect: Effect, match: list[str]) -> Iterator[str]:
    import pyarrow as pa

    yield f"s.op <> {_INSERT}"
    known = pa.concat_tables([effect.changed, effect.gone])
    for name in match:
        # Literals, by which delta-rs skips files.
        bounds = condition_on("t", name, known.column(name))
        if bounds is not None:
            yield bounds
    for i, name in enumerate(match):
        yield f"t.{delta_rs_name(name)} IS NOT DISTINCT FROM s.k{i}"


def _new(name: str, index: int, effect: Effect) -> str:
    if name not in effect.kept:
        return f"s.v{index}"
    return f"CASE WHEN s.u{index} THEN t.{delta_rs_name(name)} ELSE s.v{index} END"


def _source(log: TableLog, effect: Effect) -> pa.Table:
    """op, what to do; k…, the row to find; v…, its values; u…, whether the stored one stays.

    The names of the target's columns cannot meet these: each is written with its alias.
    """
    import pyarrow as pa

    stored = log.arrow_schema
    match, values = effect.changed.column_names, effect.came.column_names
    schema = pa.schema(
        [
            ("op", pa.int8()),
            *((f"k{i}", stored.field(name).type) for i, name in enumerate(match)),
            *((f"v{i}", stored.field(name).type) for i, name in enumerate(values)),
            *((f"u{i}", pa.bool_()) for i, name in enumerate(values) if name in effect.kept),
        ]
    )
    wrote = {f"v{values.index(n)}": effect.values.column(n) for n in effect.values.column_names}
    stays = {f"u{values.index(n)}": pa.array(mask) for n, mask in effect.kept.items()}
    return pa.concat_tables(
        [
            _part(schema, _INSERT, _numbered("v", effect.came)),
            _part(schema, _UPDATE, _numbered("k", effect.changed) | wrote | stays),
            _part(schema, _DELETE, _numbered("k", effect.gone)),
        ]
    )


def _numbered(letter: str, rows: pa.Table) -> dict[str, Any]:
    return {f"{letter}{i}": column for i, column in enumerate(rows.columns)}


def _part(schema: pa.Schema, op: int, columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    count = len(next(iter(columns.values())))
    columns = columns | {"op": pa.array([op] * count)}
    return pa.Table.from_arrays(
        [
            columns[field.name].cast(field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _all(conditions: Iterable[str]) -> str:
    # delta-rs misreads `a AND t.x IS NOT DISTINCT FROM s.x` unless each part is in parentheses.
    return " AND ".join(f"({each})" for each in conditions)
