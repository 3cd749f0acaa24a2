"""The names that Dagster does not export, and what they are needed for.

Modules that exist because of private names import these themselves: the component, its tree, the
executor, the loader of code locations, and that of workspaces. `PRIVATE_OF_DAGSTER` in
`tests/test_architecture.py` lists all of them: what to try with a new version of Dagster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# The purpose of a load of definitions, and what an earlier load of the code location stored.
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
