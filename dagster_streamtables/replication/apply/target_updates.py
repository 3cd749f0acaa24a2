"""Commits to a target, on the version that was read: missing columns, and the effect of changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from deltalake import CommitProperties, Schema, TableFeatures, write_deltalake

from dagster_streamtables.errors import PublisherProblem, TargetProblem
from dagster_streamtables.replication.apply.effect import Effect
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target.spark_rows import has_naive_times
from dagster_streamtables.replication.target.target_columns import (
    copy_command,
    missing_columns,
    whole_rows,
)
from dagster_streamtables.replication.target.target_commits import Op, OpShape, SparkCommit
from dagster_streamtables.replication.target.target_table import Provenance, TargetTable, properties
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name
from dagster_streamtables.runtime.errors.error_translation import (
    translate_commit_errors,
    translate_errors,
)
from dagster_streamtables.runtime.storage.commit_target import expression_columns
from dagster_streamtables.runtime.storage.delta_rs_merge import assignments, equal, merge, ranges


def add_missing_columns(there: TargetTable, table: PublishedTable) -> bool:
    """Add the columns that a target lacks, with the values of the existing rows, by one commit.

    Returns:
        Whether there were any.

    Raises:
        TargetProblem: The target has a column whose name differs only in case.
        ConflictingCommit: Another commit came first; nothing was added.
    """
    log, target = there.log, there.target
    schema = pa.schema(missing_columns(log, table))
    if not schema.names:
        return False
    require_distinct(table, [*log.columns, *schema.names], log.location)
    position = log.transaction(target.application)
    made = Provenance(target.replication, target.origin, table.name, position, None)
    fills = {name: table.fills.get(name) for name in schema.names}
    row = None
    if any(value is not None for value in fills.values()):
        row = pa.Table.from_pylist([fills], schema=schema)
    naive = any(map(has_naive_times, schema.types)) and "timestampNtz" not in log.features
    with translate_errors(), translate_commit_errors():
        add = _add_by_delta_rs if there.spark is None else _add_by_spark
        add(there, made, schema, row, first_naive=naive)
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


def _add_by_delta_rs(
    there: TargetTable, made: Provenance, schema: pa.Schema, row: pa.Table | None, *,
    first_naive: bool,
) -> None:  # fmt: skip
    """
    Args:
        row: The values of the existing rows, if any is not NULL.
        first_naive: Whether a separate commit allows times without a zone, after which the caller
            looks again.
    """
    log, stored = there.log, properties(there.target, made)
    if first_naive:
        log.to_write().alter.add_feature(
            TableFeatures.TimestampWithoutTimezone,
            allow_protocol_versions_increase=True,
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    elif row is not None:
        values = assignments({name: f"s.{delta_rs_name(name)}" for name in schema.names})
        merge(log.to_write(), row, (), stored, new_columns=True).when_matched_update(
            values
        ).execute()
    else:
        fields = Schema.from_arrow(schema).fields
        log.to_write().alter.add_columns(fields, commit_properties=stored)


def _add_by_spark(
    there: TargetTable, made: Provenance, schema: pa.Schema, row: pa.Table | None, *,
    first_naive: bool,
) -> None:  # fmt: skip
    commit = SparkCommit(there, made)
    if first_naive:
        commit.alter("SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    elif row is not None:
        commit.add_with_values(row)
    else:
        commit.add_columns(schema)


def write(there: TargetTable, effect: Effect, made: Provenance) -> None:
    """Commit an effect on the version that a target is at."""
    if there.spark is None:
        _by_delta_rs(there.log, effect, properties(there.target, made))
    else:
        _by_spark(there, effect, made)


def _by_delta_rs(log: TableLog, effect: Effect, properties: CommitProperties) -> None:
    table = log.to_write()
    whole = [whole_rows(log.arrow_schema, each) for each in (effect.came, effect.again)]
    rows = pa.concat_tables(whole)
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


def _by_spark(there: TargetTable, effect: Effect, made: Provenance) -> None:
    commit = SparkCommit(there, made)
    comes = effect.came.num_rows or effect.again.num_rows
    if effect.is_empty or (effect.replaces and not comes):
        commit.truncate() if effect.replaces and there.log.adds.num_rows else commit.advance()
        return
    shape = _shape(there.log, effect)
    parts = {
        Op.INSERT: effect.came, Op.UPDATE: effect.changed, Op.DELETE: effect.gone,
        Op.AGAIN: effect.again,
    }  # fmt: skip
    kinds = [op for op, rows in parts.items() if rows.num_rows and not effect.replaces]
    commit.write(iter([_ops(shape, effect)]), shape, kinds)


def write_parts_by_spark(
    there: TargetTable, nothing: Effect, effects: Iterator[Effect], made: Provenance, *,
    replaces: bool,
) -> None:  # fmt: skip
    """Commit effects on disjoint sets of rows.

    Args:
        nothing: Such an effect, without rows.
        effects: Read one after the other; none is kept.
        replaces: Whether all of them replace all rows; then none is inserted again.
    """
    whole = bool(nothing.again.num_columns) and not replaces
    shape = _shape(there.log, nothing, whole=whole)
    shape = replace(shape, kept=frozenset(shape.new))
    kinds = () if replaces else (Op.INSERT, Op.UPDATE, Op.DELETE, Op.AGAIN)
    parts = (_ops(shape, effect) for effect in effects)
    SparkCommit(there, made).write(parts, shape, kinds)


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
    merger = merge(
        log.to_write(), _ops(shape, effect), _conditions(effect, shape.match), properties
    )
    names = list(enumerate(shape.values))
    if effect.changed.num_rows:
        wrote = effect.values.column_names
        values = {n: shape.new_value(i, delta_rs_name) for i, n in names if n in wrote}
        merger = merger.when_matched_update(assignments(values), predicate=f"s.op = {Op.UPDATE}")
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
