"""The public names of `dagster_streamtables.replication`, which `__init__` reads."""

from .lifecycle.replication_report import (
    ReplicationCheck as ReplicationCheck,
    ReplicationRefresh as ReplicationRefresh,
    ReplicationStatus as ReplicationStatus,
    TableCheck as TableCheck,
    TableRefresh as TableRefresh,
    TableState as TableState,
    TableStatus as TableStatus,
)
