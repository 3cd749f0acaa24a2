"""The public names, and the modules that have them: the one list, which `__init__` reads."""

from .changes.change_window import Changes as Changes
from .changes.clock.clock import (
    AtLeast as AtLeast,
    EmptyBoundsWarning as EmptyBoundsWarning,
)
from .changes.output.output_options import Debezium as Debezium, Upsert as Upsert
from .changes.subscription import Subscription as Subscription, subscribe as subscribe, tail as tail
from .compiler import View as View
from .compiler.dialect.query_translation import ExperimentalDialect as ExperimentalDialect
from .components.component import StreamTablesComponent as StreamTablesComponent
from .declare.alter import alter_table as alter_table
from .declare.analysis import (
    Problem as Problem,
    expected_tables as expected_tables,
    find_problems as find_problems,
)
from .declare.replication_nodes import (
    ScheduledReplication as ScheduledReplication,
)
from .declare.sql_files import (
    BrokenTable as BrokenTable,
    declare as declare,
    load_tables as load_tables,
    read_folder as read_folder,
)
from .errors import (
    ConflictingCommit as ConflictingCommit,
    DamagedTable as DamagedTable,
    EnvironmentProblem as EnvironmentProblem,
    FailedQuery as FailedQuery,
    HistoryUnavailable as HistoryUnavailable,
    InvalidDefinition as InvalidDefinition,
    LostRelation as LostRelation,
    LostSpark as LostSpark,
    LostStore as LostStore,
    RefusedOperation as RefusedOperation,
    SourceProblem as SourceProblem,
    StreamTablesError as StreamTablesError,
    SuspendedTable as SuspendedTable,
    UnsupportedQuery as UnsupportedQuery,
)
from .metrics.collector import StreamTablesCollector as StreamTablesCollector
from .orchestration.alerts.alert_sensor import build_alert_sensor as build_alert_sensor
from .orchestration.alerts.alerts import (
    Alert as Alert,
    AlertKind as AlertKind,
    log_alert as log_alert,
)
from .orchestration.assets.assets import (
    RefreshConfig as RefreshConfig,
    build_source_assets as build_source_assets,
    build_stream_table_assets as build_stream_table_assets,
    stream_table_assets as stream_table_assets,
)
from .orchestration.assets.io_manager import (
    StreamTablesIOManager as StreamTablesIOManager,
    VisibleColumns as VisibleColumns,
)
from .orchestration.assets.streamtables_resource import StreamTablesResource as StreamTablesResource
from .orchestration.assets.thread_executor import threads_executor as threads_executor
from .orchestration.automation.refresh_sensor import build_refresh_sensor as build_refresh_sensor
from .orchestration.automation.sensor_settings import SensorSettings as SensorSettings
from .orchestration.catalog.asset_catalog import (
    Catalog as Catalog,
    build_catalog as build_catalog,
)
from .orchestration.catalog.node_assets import (
    ReplicationCatalog as ReplicationCatalog,
    build_replication_catalog as build_replication_catalog,
)
from .orchestration.catalog.translator import (
    ReplicatedTableProps as ReplicatedTableProps,
    StreamTableProps as StreamTableProps,
    StreamTablesTranslator as StreamTablesTranslator,
)
from .orchestration.changes.change_asset import change_asset as change_asset
from .orchestration.changes.change_definitions import (
    build_change_sensor as build_change_sensor,
    build_history_pinned_checks as build_history_pinned_checks,
    build_slot_lag_checks as build_slot_lag_checks,
)
from .orchestration.checks.build_checks import (
    build_check_schedule as build_check_schedule,
    build_table_checks as build_table_checks,
)
from .orchestration.checks.check_kind import CheckSettings as CheckSettings
from .orchestration.definitions import build_definitions as build_definitions
from .orchestration.replication.replication_assets import (
    build_replication_assets as build_replication_assets,
)
from .orchestration.replication.replication_definitions import (
    build_replica_checks as build_replica_checks,
    build_replication_lag_checks as build_replication_lag_checks,
)
from .replication.lake.publication import (
    Publication as Publication,
    PublicationEntry as PublicationEntry,
    Publications as Publications,
)
from .replication.lifecycle.publisher_declaration import (
    FromLake as FromLake,
    FromPostgres as FromPostgres,
)
from .replication.lifecycle.replication import Replication as Replication
from .replication.lifecycle.replication_manager import Replications as Replications
from .replication.lifecycle.replication_report import (
    ReplicationCheck as ReplicationCheck,
    ReplicationRefresh as ReplicationRefresh,
    ReplicationStatus as ReplicationStatus,
    TableCheck as TableCheck,
    TableRefresh as TableRefresh,
    TableState as TableState,
    TableStatus as TableStatus,
)
from .replication.model.replication_model import (
    LostPublisher as LostPublisher,
    PublisherProblem as PublisherProblem,
    ReplicationConflict as ReplicationConflict,
    TargetProblem as TargetProblem,
)
from .runtime.checks.comparison import Comparison as Comparison
from .runtime.delta.source_change import Capture as Capture
from .runtime.lake import Lake as Lake
from .runtime.model.definition import visible_columns as visible_columns
from .runtime.model.query_functions import (
    SqlFunction as SqlFunction,
    deterministic as deterministic,
    sql_function as sql_function,
)
from .runtime.model.refresh_report import (
    Action as Action,
    Refresh as Refresh,
    Window as Window,
)
from .runtime.model.stream_table import (
    CdcMode as CdcMode,
    Mode as Mode,
    OnManualWrite as OnManualWrite,
    OnRepresentation as OnRepresentation,
    OnSchemaChange as OnSchemaChange,
    StreamTable as StreamTable,
)
from .runtime.spark.settings import delta_settings as delta_settings
