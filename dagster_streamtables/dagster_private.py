"""The names that Dagster does not export, and what they are needed for.

All but two modules take them from here: `orchestration/assets/thread_executor.py` and
`worker/workspace.py`, each of which is written around several. A new version of Dagster is tried
against these three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# What a load of definitions is for, and what an earlier one of the same code location knew.
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext as DefinitionsLoadContext,
    DefinitionsLoadType as DefinitionsLoadType,
)

# What `FreshnessPolicy.cron` and `.time_window` return, whose windows no public method reads; and
# the event when freshness changes.
from dagster._core.definitions.freshness import (
    CronFreshnessPolicy as CronFreshnessPolicy,
    FreshnessState as FreshnessState,
    FreshnessStateChange as FreshnessStateChange,
    TimeWindowFreshnessPolicy as TimeWindowFreshnessPolicy,
)

# Its name, which stands in the errors of runs.
from dagster._core.errors import DagsterAssetCheckFailedError as DagsterAssetCheckFailedError

# What public methods of `DagsterInstance` return.
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord as AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus as AssetCheckExecutionRecordStatus,
)

# The base of every IO manager of a database, such as that of dagster-deltalake.
from dagster._core.storage.db_io_manager import (
    DbIOManager as DbIOManager,
    DbTypeHandler as DbTypeHandler,
    TableSlice as TableSlice,
)

# What `FreshnessPolicy.cron` raises.
from dagster_shared.check import CheckError as CheckError

# Libraries register here, as Dagster's own do.
from dagster_shared.libraries import DagsterLibraryRegistry as DagsterLibraryRegistry

# `dataclasses.replace` does not take the records of Dagster, such as `AssetCheckEvaluation`.
from dagster_shared.record import replace as replace

if TYPE_CHECKING:  # it loads a database's client
    from dagster._core.storage.event_log.base import AssetRecord as AssetRecord
