"""Every metric: its name, help text and labels; in base units, as Prometheus recommends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TABLE = ("table",)
SOURCE = ("table", "source")
SLOT = ("slot", "source")
REPLICATION = ("replication",)
WORKER = ("worker",)


@dataclass(frozen=True)
class About:
    """The help text, labels and type of a metric."""

    help: str
    labels: tuple[str, ...] = TABLE
    counter: bool = False


PREFIX = "streamtables_"
FAMILIES: Mapping[str, About] = {
    "status": About(
        "1 for the current status of the stream table, 0 for the others.", ("table", "status")
    ),
    "suspended": About("Whether the table is suspended, by a person or after errors."),
    "errors_in_a_row": About("Consecutive failed attempts, without errors that a retry may solve."),
    "fallbacks_in_a_row": About(
        "Consecutive refreshes that recomputed because the change could not be computed."
    ),
    "staleness_seconds": About(
        "Time since the first source version that the table does not reflect; 0 if none."
    ),
    "stale": About("Whether the staleness exceeds what the schedule allows."),
    "data_timestamp_seconds": About(
        "Commit time of the newest version reflected of the tables at the bottom of the graph."
    ),
    "last_commit_timestamp_seconds": About("When a refresh last committed."),
    "rows": About("Rows of the table."),
    "bytes": About("Size of the table's files."),
    "files": About("Number of the table's files."),
    "intermediate_bytes": About("Size of the files of its intermediate tables."),
    "source_versions_behind": About(
        "Versions of a source that the table does not reflect.", SOURCE
    ),
    "source_bytes_behind": About(
        "Size of the files added to a source that the table does not reflect.", SOURCE
    ),
    "source_history_seconds_left": About(
        "Time until a source may lose what the next refresh needs; absent if it loses nothing.",
        SOURCE,
    ),
    "source_history_lost": About(
        "Whether the next refresh must reinitialize the table, because history is lost.", SOURCE
    ),
    "last_refresh_seconds": About(
        "Duration of the last refresh that committed.", ("table", "phase")
    ),
    "last_refresh_rows_in": About("Source rows inserted or deleted that the last refresh read."),
    "last_refresh_rows_inserted": About("Rows that the last refresh inserted into the table."),
    "last_refresh_rows_deleted": About("Rows that the last refresh deleted from the table."),
    "last_refresh_forecast_ratio": About(
        "Actual duration of the last refresh, as a multiple of the forecast of mode AUTO."
    ),
    "refreshes": About("Refreshes that committed.", ("table", "action"), counter=True),
    "failed_refreshes": About("Failed attempts to refresh, for any reason.", counter=True),
    "slot_lag_versions": About(
        "Versions of a source that the reader of the slot has not acknowledged.", SLOT
    ),
    "slot_lag_seconds": About(
        "Time since the first rows that the reader of the slot has not acknowledged; 0 if none.",
        SLOT,
    ),
    "slot_lag_bytes": About(
        "Size of the files added to a source that the reader of the slot has not acknowledged.",
        SLOT,
    ),
    "slot_lost": About(
        "Whether the reader of the slot must begin anew, because changes are lost.", ("slot",)
    ),
    "slots_unreadable": About("Whether the slots could not be read in this scrape.", ()),
    "replication_enabled": About("Whether the replication may be refreshed.", REPLICATION),
    "replication_errors_in_a_row": About("Consecutive failed refreshes.", REPLICATION),
    "replication_last_refresh_timestamp_seconds": About(
        "When a refresh of the replication last succeeded.", REPLICATION
    ),
    "replication_lag_seconds": About(
        "Time since the oldest commit at the publisher that is not applied; 0 if none.",
        REPLICATION,
    ),
    "replication_lag_bytes": About(
        "Size of the history that the publisher keeps for the replication.", REPLICATION
    ),
    "replication_lag_commits": About(
        "Versions of a lake's tables that are not applied; absent for a server.", REPLICATION
    ),
    "replication_lag_unknown": About(
        "Whether the publisher could not tell in this scrape, or has let the slot go.", REPLICATION
    ),
    "replication_tables": About(
        "Tables of the replication, by their state.", ("replication", "state")
    ),
    "replication_table_current": About(
        "Whether no trouble keeps the table from being brought up to date.",
        ("replication", "table"),
    ),
    "replication_conflicts": About(
        "Changes that did not fit the rows of their target.", ("replication", "kind"), counter=True
    ),
    "replications_unreadable": About(
        "Whether the replications could not be read in this scrape.", ()
    ),
    "worker_alive": About("Whether the last heartbeat of the worker is recent.", WORKER),
    "worker_last_heartbeat_timestamp_seconds": About(
        "When the worker last said that it is alive.", WORKER
    ),
    "worker_nodes": About("Stream tables and replications that the worker refreshes.", WORKER),
    "worker_refreshes": About("Refreshes since the worker began.", WORKER, counter=True),
    "worker_failures": About("Failed refreshes since the worker began.", WORKER, counter=True),
    "worker_running": About("Refreshes that run.", WORKER),
    "worker_waiting": About("Refreshes that are due, and wait for others.", WORKER),
    "worker_reports_late": About("Whether Dagster cannot be told of refreshes.", WORKER),
    "worker_definitions_unreadable": About(
        "Whether changed definitions cannot be loaded, so that the last ones go on.", WORKER
    ),
    "workers_unreadable": About("Whether the workers could not be read in this scrape.", ()),
    "unreadable": About("Whether the table could not be read in this scrape."),
    "declarations_unreadable": About("Whether the declarations could not be read.", ()),
    "collect_seconds": About("Duration of this scrape.", ()),
}
