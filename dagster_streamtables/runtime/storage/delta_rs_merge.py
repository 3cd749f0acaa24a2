"""MERGE by delta-rs: rows ``s`` into a stored table ``t``, on the version that was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.key_lookup import condition
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
    from deltalake.table import TableMerger


def merge(
    table: DeltaTable,
    rows: pa.Table | pa.RecordBatchReader,
    conditions: Iterable[str],
    properties: CommitProperties,
    *,
    hooks: PostCommitHookProperties | None = None,
    new_columns: bool = False,
) -> TableMerger:
    """A MERGE without clauses. Rows match if all conditions hold.

    With `new_columns`, the table gets the columns that only the rows have.
    """
    return table.merge(
        rows,
        all_of(conditions),
        source_alias="s",
        target_alias="t",
        merge_schema=new_columns,
        commit_properties=properties,
        post_commithook_properties=hooks,
    )


def assignments(values: Mapping[str, str]) -> dict[str, str]:
    """Column → expression, with the columns quoted for a clause."""
    return {delta_rs_name(name): value for name, value in values.items()}


def equal(values: Mapping[str, str]) -> Iterator[str]:
    """The conditions that stored columns equal expressions; NULL equals NULL, and -0.0 0.0."""
    for name, value in values.items():
        yield f"t.{delta_rs_name(name)} IS NOT DISTINCT FROM {value}"


def ranges(rows: pa.Table, names: Iterable[str]) -> Iterator[str]:
    """The ranges of the values in some columns, as literals, by which delta-rs skips files."""
    for name in names:
        found = condition(exp.column(name, "t", quoted=True), rows.column(name))
        if found is not None:
            yield found


def all_of(conditions: Iterable[str]) -> str:
    # delta-rs misreads `a AND t.x IS NOT DISTINCT FROM s.x` unless each part is in parentheses.
    return " AND ".join(f"({each})" for each in conditions) or "(true)"
