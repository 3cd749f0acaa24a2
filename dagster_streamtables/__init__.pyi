"""The public names, and the modules that have them: the one list, which `__init__` reads."""

from .changes.change_window import Changes as Changes
from .changes.clock.clock import AtLeast as AtLeast
from .changes.output.output_options import Debezium as Debezium, Upsert as Upsert
from .changes.subscription import Subscription as Subscription, subscribe as subscribe
from .compiler import View as View
from .components.component import StreamTablesComponent as StreamTablesComponent
from .declare.nodes import ScheduledReplication as ScheduledReplication
from .declare.sql_files import load_tables as load_tables
from .errors import StreamTablesError as StreamTablesError
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
from .orchestration.catalog.translator import (
    ReplicatedTableProps as ReplicatedTableProps,
    StreamTableProps as StreamTableProps,
    StreamTablesTranslator as StreamTablesTranslator,
)
from .orchestration.changes.change_asset import change_asset as change_asset
from .orchestration.changes.change_definitions import build_change_sensor as build_change_sensor
from .orchestration.checks.check_kind import CheckSettings as CheckSettings
from .orchestration.definitions import build_definitions as build_definitions
from .orchestration.replication.replication_assets import (
    build_replication_assets as build_replication_assets,
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
from .runtime.lake import Lake as Lake
from .runtime.model.definition import visible_columns as visible_columns
from .runtime.model.query_functions import (
    SqlFunction as SqlFunction,
    deterministic as deterministic,
    sql_function as sql_function,
)
from .runtime.model.refresh_report import Action as Action, Refresh as Refresh
from .runtime.model.stream_table import (
    CdcMode as CdcMode,
    Mode as Mode,
    OnFull as OnFull,
    OnManualWrite as OnManualWrite,
    OnRepresentation as OnRepresentation,
    OnSchemaChange as OnSchemaChange,
    StreamTable as StreamTable,
)
from .runtime.spark.settings import delta_settings as delta_settings
