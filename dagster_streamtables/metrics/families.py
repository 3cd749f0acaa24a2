"""Every metric: its name, what it means, and its labels; in base units, as Prometheus wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TABLE = ("table",)
SOURCE = ("table", "source")


@dataclass(frozen=True)
class About:
    """A metric before it has values."""

    help: str
    labels: tuple[str, ...] = TABLE
    counter: bool = False


PREFIX = "streamtables_"
FAMILIES: Mapping[str, About] = {
    "status": About(
        "1 for the status that a stream table has, 0 for the others.", ("table", "status")
    ),
    "suspended": About("Whether refreshes of the table are refused, by hand or after errors."),
    "errors_in_a_row": About("Failed attempts in a row, of those that only a person can mend."),
    "fallbacks_in_a_row": About(
        "Refreshes in a row whose change could not be computed, so that the query was run in full."
    ),
    "staleness_seconds": About("Since the first version of a source that the table lacks; or 0."),
    "stale": About("Whether the table is staler than its schedule allows."),
    "data_timestamp_seconds": About(
        "When the newest version it reflects was committed, of the tables at the bottom."
    ),
    "last_commit_timestamp_seconds": About("When a refresh last committed."),
    "rows": About("Rows of the table."),
    "bytes": About("Size of the table's files."),
    "files": About("Number of the table's files."),
    "intermediate_bytes": About("Size of the files of its intermediate tables."),
    "source_versions_behind": About(
        "Versions of a source that the table does not reflect.", SOURCE
    ),
    "source_bytes_behind": About("Size of the files that came to a source since.", SOURCE),
    "source_history_seconds_left": About(
        "Until a source may lose what the next refresh needs; absent where nothing goes.", SOURCE
    ),
    "source_history_lost": About("Whether the next refresh must build the table anew.", SOURCE),
    "last_refresh_seconds": About("Of the last refresh that committed.", ("table", "phase")),
    "last_refresh_rows_in": About("Rows that came to or went from the sources."),
    "last_refresh_rows_inserted": About("Stored rows that were written."),
    "last_refresh_rows_deleted": About("Stored rows that were taken away."),
    "last_refresh_forecast_ratio": About(
        "How many times as long as expected it took, where mode AUTO chose."
    ),
    "refreshes": About("Refreshes that committed.", ("table", "action"), counter=True),
    "failed_refreshes": About("Attempts that failed, for whatever reason.", counter=True),
    "unreadable": About("Whether the table could not be read for this scrape."),
    "declarations_unreadable": About("Whether the declarations could not be read.", ()),
    "collect_seconds": About("How long it took to collect all this.", ()),
}
