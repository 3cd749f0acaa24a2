"""Commits to a target, on the version that was read: missing columns, and the effect of changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, Schema, TableFeatures, write_deltalake

from dagster_streamtables.errors import PublisherProblem, TargetProblem
from dagster_streamtables.replication.apply.effect import Effect
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target.spark_rows import has_naive_times, stage_rows
from dagster_streamtables.replication.target.target_columns import (
    copy_command,
    missing_columns,
    whole_rows,
)
from dagster_streamtables.replication.target.target_commits import Op, OpShape, SparkCommit
from dagster_streamtables.replication.target.target_table import Provenance, TargetTable, properties
from dagster_streamtables.runtime.delta.arrow import pa, plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name
from dagster_streamtables.runtime.errors.error_translation import (
    translate_commit_errors,
    translate_errors,
)
from dagster_streamtables.runtime.storage.commit_target import expression_columns
from dagster_streamtables.runtime.storage.delta_rs_merge import assignments, equal, merge, ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_missing_columns(there: TargetTable, table: PublishedTable) -> bool:
    """Add the columns that a target lacks, with the values of the existing rows, by one commit.

    Returns:
        Whether there were any.

    Raises:
        TargetProblem: The target has a column whose name differs only in case.
        ConflictingCommit: Another commit came first; nothing was added.
    """
    log, target = there.log, there.target
    missing = missing_columns(log, table)
    if not missing:
        return False
    require_distinct(table, [*log.columns, *(field.name for field in missing)], log.location)
    position = log.transaction(target.application)
    made = Provenance(target.replication, target.origin, table.name, position, None)
    fills = {f.name: table.fills[f.name] for f in missing if table.fills.get(f.name) is not None}
    naive = any(has_naive_times(field.type) for field in missing)
    naive = naive and "timestampNtz" not in log.features
    with translate_errors(), translate_commit_errors():
        if there.spark is not None:
            commit = SparkCommit(there.spark, target, log, made)
            _add_by_spark(commit, missing, fills, first_naive=naive)
        elif naive:
            _allow_naive_times(log)
        elif fills:
            _add_with_values(log, missing, fills, properties(target, made))
        else:
            fields = Schema.from_arrow(pa.schema(missing)).fields
            log.to_write().alter.add_columns(fields, commit_properties=properties(target, made))
    return True


def require_fills(log: TableLog, table: PublishedTable) -> None:
    """Raise `PublisherProblem` if the values of existing rows in a new column are unknown."""
    new = [each.name for each in missing_columns(log, table) if each.name in table.untold]
    if new and log.adds.num_rows:
        raise PublisherProblem(
            f'rows of "{table.name}" have values in the new column "{new[0]}" that are not logged',
            where=log.location,
            why="the column has a default or is NOT NULL, and the server has rewritten the table, "
            "so that each row may have got a value of its own when the column was added",
            fix="add the column to the target, or let the replication do that: streamtables "
            "replications alter NAME --add-columns; then copy the table again: "
            + copy_command(table.name),
        )


def require_distinct(table: PublishedTable, names: Collection[str], location: str) -> None:
    """Raise `TargetProblem` if names of columns differ only in case, in which Spark finds none of
    them."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise TargetProblem(
                f'columns "{other}" and "{name}" of the target of "{table.name}" '
                "would differ only in case",
                where=location,
                why="Delta tables do not tell such names apart",
                fix="rename the column of the target, or publish the table without it",
            )


def _add_with_values(
    log: TableLog, missing: Sequence[pa.Field], fills: Mapping[str, Any], properties: Any
) -> None:
    schema = pa.schema(missing)
    row = pa.Table.from_pylist([{name: fills.get(name) for name in schema.names}], schema=schema)
    values = assignments({name: f"s.{delta_rs_name(name)}" for name in schema.names})
    merge(log, row, (), properties, new_columns=True).when_matched_update(values).execute()


def _add_by_spark(
    commit: SparkCommit, missing: Sequence[pa.Field], fills: Mapping[str, Any], *, first_naive: bool
) -> None:
    schema = plain_schema(pa.schema(missing))
    if first_naive:
        # A separate commit, after which the caller looks again.
        commit.alter("SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    elif fills:
        row = {name: fills.get(name) for name in schema.names}
        rows = iter([pa.Table.from_pylist([row], schema=schema)])
        with stage_rows(commit.spark, commit.log, commit.made.replication, schema, rows) as found:
            commit.add_with_values(found, schema.names)
    else:
        commit.add_columns(schema)


def _allow_naive_times(log: TableLog) -> None:
    """A separate commit, after which the caller looks again."""
    log.to_write().alter.add_feature(
        TableFeatures.TimestampWithoutTimezone,
        allow_protocol_versions_increase=True,
        commit_properties=CommitProperties(max_commit_retries=0),
    )


def write(there: TargetTable, effect: Effect, made: Provenance) -> None:
    """Commit an effect on the version that a target is at."""
    if there.spark is None:
        _by_delta_rs(there.log, effect, properties(there.target, made))
    else:
        _by_spark(there.spark, there, effect, made)


def _by_delta_rs(log: TableLog, effect: Effect, properties: CommitProperties) -> None:
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
    """Commit effects on disjoint sets of rows.

    Args:
        shape: The shape of all effects: `shape_of_parts`.
        effects: Read one after the other; none is kept.
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
    """The shape of the effects of some changes, one of which is this one."""
    shape = _shape(log, effect, whole=bool(effect.again.num_columns))
    return OpShape(shape.stored, shape.match, shape.values, shape.new, frozenset(shape.new))


def _shape(log: TableLog, effect: Effect, *, whole: bool | None = None) -> OpShape:
    """
    Args:
        whole: Whether rows are inserted again; by default, if the effect has such rows.
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
    yield f"s.op = {Op.UPDATE} OR s.op = {Op.DELETE}"
    yield from ranges(pa.concat_tables([effect.changed, effect.gone]), match)
    yield from equal({name: f"s.k{i}" for i, name in enumerate(match)})


def _new(name: str, index: int, effect: Effect) -> str:
    if name not in effect.kept:
        return f"s.v{index}"
    return f"CASE WHEN s.u{index} THEN t.{delta_rs_name(name)} ELSE s.v{index} END"
