"""Write an effect to a target, as one commit on the version that was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dagster_streamtables.replication.apply.effect import Effect
from dagster_streamtables.replication.target.ops import Op, OpShape
from dagster_streamtables.replication.target.spark_commit import SparkCommit
from dagster_streamtables.replication.target.spark_rows import stage_rows
from dagster_streamtables.replication.target.target import Provenance, properties
from dagster_streamtables.replication.target.target_table import TargetTable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import delta_rs_name
from dagster_streamtables.runtime.storage.delta_rs_merge import assignments, equal, merge, ranges
from dagster_streamtables.runtime.storage.target import expression_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties
    from pyspark.sql import SparkSession


def write(there: TargetTable, effect: Effect, made: Provenance) -> None:
    """Commit an effect on the version that a target is at."""
    if there.spark is None:
        _by_delta_rs(there.log, effect, properties(there.target, made))
    else:
        _by_spark(there.spark, there, effect, made)


def whole_rows(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Rows in all columns of the target, NULL in those that they have not."""
    import pyarrow as pa

    columns = [
        rows.column(field.name)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _by_delta_rs(log: TableLog, effect: Effect, properties: CommitProperties) -> None:
    from deltalake import write_deltalake

    table = log.to_write()
    rows = _new_rows(log, effect)
    if effect.replaces and not rows.num_rows and log.adds.num_rows:
        # Without a condition, as by TRUNCATE, so that who reads the target can tell. Of an empty
        # table it would be no commit.
        table.delete(commit_properties=properties)
    elif effect.replaces and rows.num_rows:
        write_deltalake(table, rows, mode="overwrite", commit_properties=properties)
    elif effect.changed.num_rows or effect.gone.num_rows:
        _merge(log, effect, properties)
    elif rows.num_rows:
        write_deltalake(table, rows, mode="append", commit_properties=properties)
    else:
        table.create_write_transaction([], "append", table.schema(), commit_properties=properties)


def _new_rows(log: TableLog, effect: Effect) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(
        [whole_rows(log.arrow_schema, each) for each in (effect.came, effect.again)]
    )


def _by_spark(spark: SparkSession, there: TargetTable, effect: Effect, made: Provenance) -> None:
    commit = SparkCommit(spark, there.target, there.log, made)
    comes = effect.came.num_rows or effect.again.num_rows
    if effect.is_empty or (effect.replaces and not comes):
        commit.truncate() if effect.replaces and there.log.adds.num_rows else commit.advance()
        return
    shape = _shape(there.log, effect)
    parts = iter([_ops(shape, effect)])
    with stage_rows(spark, there.log, there.target.replication, shape.schema, parts) as ops:
        if effect.replaces:
            names = shape.values if effect.again.num_rows else shape.new
            commit.overwrite(ops, shape, names)
        else:
            commit.merge(ops, shape, kinds=_kinds(effect))


def write_parts_by_spark(
    spark: SparkSession, there: TargetTable, shape: OpShape, effects: Iterable[Effect],
    made: Provenance, *, replaces: bool,
) -> None:  # fmt: skip
    """Commit effects on rows that have nothing to do with each other.

    Args:
        spark: The session.
        there: The target.
        shape: Of all effects: `shape_of_parts`.
        effects: One after the other; none is kept.
        made: What the commit says.
        replaces: Whether all of them replace all rows.
    """
    commit = SparkCommit(spark, there.target, there.log, made)
    parts = (_ops(shape, effect) for effect in effects)
    with stage_rows(spark, there.log, there.target.replication, shape.schema, parts) as ops:
        if replaces:
            commit.overwrite(ops, shape, shape.new)
        else:
            commit.merge(ops, shape, kinds=(Op.INSERT, Op.UPDATE, Op.DELETE, Op.AGAIN))


def shape_of_parts(log: TableLog, effect: Effect) -> OpShape:
    """The shape that effects of some changes have, of which this is one."""
    shape = _shape(log, effect, whole=bool(effect.again.num_columns))
    return OpShape(shape.stored, shape.match, shape.values, shape.new, frozenset(shape.new))


def _shape(log: TableLog, effect: Effect, *, whole: bool | None = None) -> OpShape:
    """
    Args:
        log: The target.
        effect: What is written.
        whole: Whether rows are inserted again; None if the effect says it.
    """
    again = bool(effect.again.num_rows) if whole is None else whole
    without = expression_columns(log)
    values = effect.again.column_names if again else effect.came.column_names
    return OpShape(
        log.arrow_schema,
        effect.changed.column_names,
        [name for name in values if name not in without or name in effect.came.column_names],
        effect.came.column_names,
        frozenset(effect.kept),
    )


def _kinds(effect: Effect) -> list[Op]:
    parts = {
        Op.INSERT: effect.came, Op.UPDATE: effect.changed, Op.DELETE: effect.gone,
        Op.AGAIN: effect.again,
    }  # fmt: skip
    return [op for op, rows in parts.items() if rows.num_rows]


def _ops(shape: OpShape, effect: Effect) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(
        [
            shape.rows(Op.INSERT, values=effect.came),
            shape.rows(Op.UPDATE, match=effect.changed, values=effect.values, kept=effect.kept),
            shape.rows(Op.DELETE, match=effect.gone),
            shape.rows(Op.AGAIN, values=effect.again),
        ]
    )


def _merge(log: TableLog, effect: Effect, properties: CommitProperties) -> None:
    """Insert, update and delete at once."""
    shape = _shape(log, effect)
    merger = merge(log, _ops(shape, effect), _conditions(effect, shape.match), properties)
    names = list(enumerate(shape.values))
    if effect.changed.num_rows:
        wrote = effect.values.column_names
        updates = assignments({n: _new(n, i, effect) for i, n in names if n in wrote})
        merger = merger.when_matched_update(updates, predicate=f"s.op = {Op.UPDATE}")
    if effect.gone.num_rows:
        merger = merger.when_matched_delete(predicate=f"s.op = {Op.DELETE}")
    if effect.came.num_rows or effect.again.num_rows:
        inserts = assignments({name: f"s.v{i}" for i, name in names})
        comes = f"s.op = {Op.INSERT} OR s.op = {Op.AGAIN}"
        merger = merger.when_not_matched_insert(inserts, predicate=comes)
    merger.execute()


def _conditions(effect: Effect, match: Sequence[str]) -> Iterator[str]:
    import pyarrow as pa

    yield f"s.op = {Op.UPDATE} OR s.op = {Op.DELETE}"
    yield from ranges(pa.concat_tables([effect.changed, effect.gone]), match)
    yield from equal({name: f"s.k{i}" for i, name in enumerate(match)})


def _new(name: str, index: int, effect: Effect) -> str:
    if name not in effect.kept:
        return f"s.v{index}"
    return f"CASE WHEN s.u{index} THEN t.{delta_rs_name(name)} ELSE s.v{index} END"
