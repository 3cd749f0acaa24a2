"""The effect of changes on a target, with or without an identity."""

from __future__ import annotations

from dagster_streamtables.replication.apply.contract import OnConflict
from dagster_streamtables.replication.apply.counted import counted_effect
from dagster_streamtables.replication.apply.effect import Effect
from dagster_streamtables.replication.apply.keyed import keyed_effect
from dagster_streamtables.replication.apply.told import ToldChanges
from dagster_streamtables.replication.target.columns import Columns
from dagster_streamtables.replication.target.target_table import StoredRows


def effect_of(
    stored: StoredRows, columns: Columns, changes: ToldChanges, on_conflict: OnConflict
) -> Effect:
    """
    Raises:
        TargetProblem: Several rows of the target have the identity of one.
    """
    if columns.table.identity is None:
        return counted_effect(stored, columns, changes, on_conflict)
    return keyed_effect(stored, columns, changes, on_conflict)
