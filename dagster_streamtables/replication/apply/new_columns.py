"""Add published columns to a target that lacks them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.model.errors import PublisherProblem, TargetProblem
from dagster_streamtables.replication.model.publisher import PublishedTable
from dagster_streamtables.replication.target.columns import copy_command, missing_columns
from dagster_streamtables.replication.target.spark_commit import SparkCommit
from dagster_streamtables.replication.target.spark_rows import stage_rows
from dagster_streamtables.replication.target.target import Provenance, properties
from dagster_streamtables.replication.target.target_table import TargetTable
from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import delta_rs_name
from dagster_streamtables.runtime.errors.translate import translate_commit_errors, translate_errors
from dagster_streamtables.runtime.storage.delta_rs_merge import assignments, merge

if TYPE_CHECKING:
    import pyarrow as pa


def add_missing_columns(there: TargetTable, table: PublishedTable) -> bool:
    """Add the columns that a target lacks, with the values of the rows that are there.

    The columns and their values are one commit: a column that is there is filled.

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
    naive = _has_naive_times(missing) and "timestampNtz" not in log.features
    with translate_errors(), translate_commit_errors():
        if there.spark is not None:
            commit = SparkCommit(there.spark, target, log, made)
            _add_by_spark(commit, missing, fills, first_naive=naive)
        elif naive:
            _allow_naive_times(log)
        elif fills:
            _add_with_values(log, missing, fills, properties(target, made))
        else:
            _add(log, missing, properties(target, made))
    return True


def require_fills(log: TableLog, table: PublishedTable) -> None:
    """
    Raises:
        PublisherProblem: The publisher does not tell what rows that are there have in a new column.
    """
    new = [each.name for each in missing_columns(log, table) if each.name in table.untold]
    if new and log.adds.num_rows:
        raise PublisherProblem(
            f'rows of "{table.name}" have values in the new column "{new[0]}" that are not told',
            where=log.location,
            why="the column has a default or is NOT NULL, and the server has rewritten the table, "
            "so that each row may have got a value of its own when the column was added",
            fix="add the column to the target, or let the replication do that: streamtables "
            "replications alter NAME --add-columns; then copy the table again: "
            + copy_command(table.name),
        )


def require_distinct(table: PublishedTable, names: Collection[str], location: str) -> None:
    """
    Raises:
        TargetProblem: Names of columns differ only in case, in which Spark finds none of them.
    """
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


def _add(log: TableLog, missing: Sequence[pa.Field], properties: Any) -> None:
    import pyarrow as pa
    from deltalake import Schema

    fields = Schema.from_arrow(pa.schema(missing)).fields
    log.to_write().alter.add_columns(fields, commit_properties=properties)


def _add_with_values(
    log: TableLog, missing: Sequence[pa.Field], fills: Mapping[str, Any], properties: Any
) -> None:
    import pyarrow as pa

    schema = pa.schema(missing)
    row = pa.Table.from_pylist([{name: fills.get(name) for name in schema.names}], schema=schema)
    values = assignments({name: f"s.{delta_rs_name(name)}" for name in schema.names})
    merge(log, row, (), properties, new_columns=True).when_matched_update(values).execute()


def _add_by_spark(
    commit: SparkCommit,
    missing: Sequence[pa.Field],
    fills: Mapping[str, Any],
    *,
    first_naive: bool,
) -> None:
    import pyarrow as pa

    schema = plain_schema(pa.schema(missing))
    if first_naive:
        # A commit of its own, after which the caller looks again.
        commit.alter("SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    elif fills:
        row = {name: fills.get(name) for name in schema.names}
        rows = iter([pa.Table.from_pylist([row], schema=schema)])
        with stage_rows(commit.spark, commit.log, commit.made.replication, schema, rows) as found:
            commit.add_with_values(found, schema.names)
    else:
        commit.add_columns(schema)


def _has_naive_times(fields: Sequence[pa.Field]) -> bool:
    return any("timestamp[us]" in str(field.type) for field in fields)


def _allow_naive_times(log: TableLog) -> None:
    """A commit of its own, after which the caller looks again."""
    from deltalake import CommitProperties, TableFeatures

    log.to_write().alter.add_feature(
        TableFeatures.TimestampWithoutTimezone,
        allow_protocol_versions_increase=True,
        commit_properties=CommitProperties(max_commit_retries=0),
    )
