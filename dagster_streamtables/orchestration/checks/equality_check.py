"""The equality check: does a stream table equal its query at the versions that it reflects?

Spark recomputes the query as the user wrote it, so the check shares only the versions with the
compiled change. It costs a full run of the query, so it has its own schedule and never blocks a
refresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import share
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.checks.check_kind import Evaluation, TableCheck

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Comparison


def equals_recomputation(given: Evaluation) -> dg.AssetCheckResult:
    """Does a table, or a sample of it, equal its query?

    Raises:
        StreamTablesError: It cannot be compared: it was never refreshed, or a version that it
            reflects is gone.
    """
    found = given.lake.check(given.examined.table, sample=given.settings.sample)
    metadata: dict[str, Any] = {
        keys.MISSING: found.missing,
        keys.UNEXPECTED: found.unexpected,
        keys.VERSION: found.version,
        keys.FRONTIER: dg.MetadataValue.json(dict(found.frontier)),
        keys.SECONDS: float(found.seconds),
    }
    if found.part is not None:
        metadata |= {keys.PART: found.part.fraction, keys.SEED: found.part.seed}
    if found.sample:
        metadata[keys.SAMPLE] = keys.rows_table(found.sample, first="__difference")
    said = _verdict(found)
    if found.functions and not found.equal:
        said += f" The query calls {', '.join(found.functions)}: is each deterministic?"
    if found.part is not None:
        which = f"{', '.join(found.part.columns)}, seed {found.part.seed}"
        said += f" Compared a sample of {share(found.part.fraction)} of the rows, by {which}."
    return dg.AssetCheckResult(
        passed=found.equal,
        severity=given.severity,
        description=said,
        metadata=metadata,
    )


def _verdict(found: Comparison) -> str:
    if found.equal:
        return "The table equals its recomputation."
    if found.columns:
        return f"The columns differ: {found.columns}."
    return f"Rows missing: {found.missing:,}, unexpected: {found.unexpected:,}."


EQUALITY = TableCheck(
    "equality",
    "equals_recomputation",
    "The table equals its query, recomputed at the source versions that it reflects.",
    equals_recomputation,
)
