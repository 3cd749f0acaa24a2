"""The metadata of assets and events: all keys, and functions that create the values.

Numbers stay numbers, and keys never change, because Dagster plots them over time. Dagster lists
metadata in their order: what people ask first comes first, what only programs read comes last.

Dagster renders Markdown. Only a description is Markdown as its author wrote it; names and foreign
texts are escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.compiler import View, type_text
from dagster_streamtables.errors import StreamTablesError, legible, one_line
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.model.definition import CHANGED_AT_TYPE
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.refresh.completion import CHANGE

if TYPE_CHECKING:
    from dagster_streamtables.compiler import Plan


# On the asset.
DEFINITION = "streamtables/definition"
DIALECT = "streamtables/dialect"
SESSION_TIMEZONE = "streamtables/session_timezone"
PLAN = "streamtables/plan"
CHANGE_SQL = "streamtables/change_sql"
LAW = "streamtables/law"
MODE = "streamtables/mode"
RESOLVED_MODE = "streamtables/resolved_mode"
"""The effective mode for this query, if it differs from the declared one."""
SCHEDULE = "streamtables/schedule"
RESOLVED_SCHEDULE = "streamtables/resolved_schedule"
PROBLEM = "streamtables/problem"
SOURCE_KEYS = "streamtables/source_keys"
LOST_SLOT = "streamtables/lost_slot"
"""On a failure of a replication: the slot that its publisher dropped."""
# On each materialization. VERSION is also on the observations of sources.
ACTION = "streamtables/action"
REASON = "streamtables/reason"
FULL_REASON = "streamtables/full_reason"
"""The `FullReason` of a refresh that ran the query over all rows; absent if it did not."""
FALLBACK = "streamtables/fallback"
"""Why a refresh recomputed instead of being differential; absent if it was."""
VERSION = "streamtables/version"
WINDOWS = "streamtables/windows"
INTERMEDIATES = "streamtables/intermediate_tables"
FRONTIER = "streamtables/frontier"
"""The version of each source that the refresh read; also on equality checks."""
SEEN = "streamtables/seen"
"""The commits that the refresh looked at: by table, the version and a digest."""
COMMIT = "streamtables/commit"
"""On the observations of sources: a digest of the commit of VERSION."""
ROWS_IN = "streamtables/rows_in"
CHANGE_RATIO = "streamtables/change_ratio"
"""The fraction of rows that changed, in the source where it is the largest."""
INSERTED = "streamtables/inserted"
DELETED = "streamtables/deleted"
CHANGED_ROWS = "streamtables/changed_rows"
"""A sample of the changed rows, if the resource allows it."""
FILES = "streamtables/files"
WRITER = "streamtables/writer"
REFRESHES = "streamtables/refreshes"
"""How many refreshes a report of the worker sums up; absent if a run reported one."""
SECONDS = "streamtables/seconds"
PHASES = "streamtables/phases"
"""The seconds of each phase of a refresh."""
EXPECTED = "streamtables/expected_seconds/"
"""Followed by an option of mode AUTO: differential or full."""
FORECAST_ERROR = "streamtables/forecast_error"
"""The actual duration as a multiple of the forecast."""
AS_OF = "streamtables/as_of"
"""When the refresh read the versions of its sources: the table reflects this time."""
CHANGED = "streamtables/last_changed"
"""When the rows of the table last changed; later refreshes found nothing new."""
DATA_TIMESTAMP = "streamtables/data_timestamp"
STALENESS = "streamtables/staleness_seconds"
"""Time from the commit of the newest reflected source version to the end of the refresh."""
EVALUATED = "streamtables/evaluated"
"""On a repeated check result of a table whose rows have changed since: when it was evaluated."""
# On each result of an equality check.
MISSING = "streamtables/missing"
UNEXPECTED = "streamtables/unexpected"
SAMPLE = "streamtables/sample"
PART = "streamtables/part"
"""The fraction of rows that was compared, from 0 to 1."""
SEED = "streamtables/seed"
"""The seed of the sample, to compare the same rows again."""
# On each result of the other checks.
VIOLATIONS = "streamtables/violations"
DRIFT = "streamtables/drift"
BEHIND = "streamtables/seconds_behind"
"""The age of the oldest source commit that the table does not reflect."""
LATE = "streamtables/late"
"""Whether that is more than the schedule allows. If not, the check fails because a refresh did."""
VERSIONS_BEHIND = "streamtables/versions_behind"
BYTES_BEHIND = "streamtables/bytes_behind"
# On each result of a retention check.
HISTORY = "streamtables/history"

ROW_COUNT = "dagster/row_count"
SIZE_BYTES = "dagster/size_bytes"
TABLE_NAME = "dagster/table_name"
URI = "dagster/uri"
COLUMN_SCHEMA = "dagster/column_schema"
COLUMN_LINEAGE = "dagster/column_lineage"
CODE_REFERENCES = "dagster/code_references"


_FIRST = (
    ACTION,
    REASON,
    FALLBACK,
    AS_OF,
    CHANGED,
    DATA_TIMESTAMP,
    STALENESS,
    ROW_COUNT,
    ROWS_IN,
    INSERTED,
    DELETED,
    CHANGE_RATIO,
    CHANGED_ROWS,
    WINDOWS,
    INTERMEDIATES,
    SECONDS,
    PHASES,
)
_LAST = (VERSION, COMMIT, URI, COLUMN_SCHEMA, COLUMN_LINEAGE, FRONTIER, SEEN)


def in_reading_order(found: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an event as people read them."""
    places = {
        **{key: place for place, key in enumerate(_FIRST)},
        **{key: len(_FIRST) + 1 + place for place, key in enumerate(_LAST)},
    }
    return dict(sorted(found.items(), key=lambda each: places.get(each[0], len(_FIRST))))


def read_or_warn(
    read: Callable[[], dict[str, Any]], what: str, warn: Callable[[str], object]
) -> dict[str, Any]:
    """Metadata of a refresh; after an error none, with a warning: the refresh is committed, so its
    step must not fail."""
    try:
        return read()
    except Exception as error:
        warn(f"{what} not recorded: {legible(str(error))}")
        return {}


def refresh_metadata(refresh: Refresh) -> dict[str, Any]:
    """What one refresh did. Unmeasured values are left out, not written as 0."""
    found: dict[str, Any] = {
        ACTION: str(refresh.action),
        REASON: refresh.reason,
        VERSION: refresh.version,
        ROWS_IN: refresh.rows_in,
        INSERTED: refresh.inserted,
        DELETED: refresh.deleted,
        SECONDS: float(refresh.seconds),
    }
    if refresh.phases:
        phases = ({"phase": name, "seconds": float(n)} for name, n in refresh.phases.items())
        found[PHASES] = _records({"phase": "string", "seconds": "float"}, phases)
    if refresh.windows:
        found[WINDOWS] = _windows(refresh)
        after = {source: window.after for source, window in refresh.windows.items()}
        found[FRONTIER] = dg.MetadataValue.json(after)
    if refresh.seen:
        seen = {name: [head.version, head.commit] for name, head in refresh.seen.items()}
        found[SEEN] = dg.MetadataValue.json(seen)
    if refresh.intermediates:
        found[INTERMEDIATES] = _intermediates(refresh)
    measured = {
        ROW_COUNT: refresh.row_count,
        SIZE_BYTES: refresh.size_bytes,
        FILES: refresh.files,
        CHANGE_RATIO: refresh.change_ratio and round(refresh.change_ratio, 4),
        WRITER: refresh.writer or None,
    }
    found |= {key: value for key, value in measured.items() if value is not None}
    if refresh.full_reason is not None:
        found[FULL_REASON] = str(refresh.full_reason)
    if refresh.fallback:
        found[FALLBACK] = refresh.fallback
    if refresh.preview:
        found[CHANGED_ROWS] = rows_table(refresh.preview, first=CHANGE)
    if refresh.forecast is not None:
        expected = asdict(refresh.forecast).items()
        found |= {EXPECTED + way: round(float(seconds), 3) for way, seconds in expected}
    if refresh.forecast_error is not None:
        found[FORECAST_ERROR] = round(float(refresh.forecast_error), 3)
    if refresh.data_timestamp is not None:
        at = refresh.data_timestamp.timestamp()
        found[DATA_TIMESTAMP] = dg.MetadataValue.timestamp(at)
        # Without new rows, the newest version may be a month old although the table is not stale.
        if refresh.action is not Action.NO_DATA:
            late = (datetime.now(UTC) - refresh.data_timestamp).total_seconds()
            found[STALENESS] = max(0.0, round(late, 1))
    return found


def plan_metadata(
    plan: Plan, keys: Mapping[str, dg.AssetKey], *, change_sql: bool = True, changed_at: str = ""
) -> dict[str, Any]:
    """What is known about a table before its first refresh; `changed_at` names the column with the
    time of each row's last change, if it has one."""
    columns = {name: type_text(kind).lower() for name, kind in plan.schema.items()}
    columns |= {changed_at: CHANGED_AT_TYPE} if changed_at else {}
    kept = plan.with_intermediates
    return {
        COLUMN_SCHEMA: column_schema(columns, changed_at),
        COLUMN_LINEAGE: column_lineage(plan, keys),
        PLAN: code_metadata(kept.explain(), ""),
        **({CHANGE_SQL: code_metadata(kept.change_sql(), "sql")} if change_sql else {}),
        LAW: kept.law,
    }


def column_schema(columns: Mapping[str, str], changed_at: str = "") -> dg.TableSchema:
    """Columns and their types as Dagster shows them; `changed_at` as in `plan_metadata`."""
    about = {changed_at: "time of the row's last change"}
    return dg.TableSchema(
        [dg.TableColumn(name, kind, about.get(name)) for name, kind in columns.items()]
    )


def column_lineage(plan: Plan, keys: Mapping[str, dg.AssetKey]) -> dg.TableColumnLineage:
    """The source columns that each column is computed from."""
    found = {
        column: [
            dg.TableColumnDep(keys[source], name) for source, name in origins if source in keys
        ]
        for column, origins in plan.lineage().items()
    }
    return dg.TableColumnLineage(found)


def definition_metadata(table: StreamTable) -> dg.JsonMetadataValue:
    """The declaration, so that `read_definition` can restore it from the asset alone."""
    return dg.MetadataValue.json({**asdict(table), "mode": str(table.mode)})


def read_definition(metadata: Mapping[str, Any]) -> StreamTable:
    """The declaration that `definition_metadata` wrote. Raises `StreamTablesError` if the asset is
    not a stream table, or its declaration is broken."""
    problem = _json(metadata.get(PROBLEM))
    if problem:
        raise StreamTablesError(**problem)
    definition = dict(_json(metadata.get(DEFINITION)) or {})
    if not definition:
        raise StreamTablesError(
            "a selected asset is not a stream table",
            fix="select only assets that a factory of this package defined",
        )
    views = tuple(View(**view) for view in definition.pop("views", ()))
    return StreamTable(**definition, views=views)


def problem_metadata(error: StreamTablesError) -> dg.JsonMetadataValue:
    """The four parts of an error message."""
    return dg.MetadataValue.json(_parts(error))


def _parts(error: StreamTablesError) -> dict[str, str]:
    return {"what": error.what, "where": error.where, "why": error.why, "fix": error.fix}


def read_heads(metadata: Mapping[str, Any]) -> dict[str, Head]:
    """The commits that the refresh of a materialization looked at."""
    return {name: Head(*each) for name, each in (_json(metadata.get(SEEN)) or {}).items()}


def read_source_keys(metadata: Mapping[str, Any]) -> dict[str, dg.AssetKey]:
    """The asset key of each source, by its name in the query."""
    found = _json(metadata.get(SOURCE_KEYS)) or {}
    return {name: dg.AssetKey(path) for name, path in found.items()}


def failure(error: StreamTablesError, *, allow_retries: bool, **more: str) -> dg.Failure:
    """The failure of a Dagster step: the error message, and its parts as metadata."""
    shown = {"where": code_metadata(error.where, "")}
    return dg.Failure(
        description=str(error),
        metadata={
            f"streamtables/{k}": shown.get(k, t) for k, t in (_parts(error) | more).items() if t
        },
        allow_retries=allow_retries,
    )


_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~#&$!])")


def code_block(text: str, language: str = "") -> str:
    """A code block. Its fence is longer than any in the text, so the text cannot end the block.

    >>> print(code_block("SELECT 1", "sql"))
    ```sql
    SELECT 1
    ```
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{legible(text).strip()}\n{fence}"


def words(text: str) -> str:
    """One line of text without markup.

    >>> print(words("a [link](x) in <b>"))
    a \\[link\\](x) in \\<b\\>
    """
    return _MARKUP.sub(r"\\\1", one_line(text))


def code_metadata(text: str, language: str) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(code_block(text, language))


def rows_table(rows: Sequence[Mapping[str, Any]], *, first: str) -> dg.TableMetadataValue:
    """Rows of data, with column `first` first: it says what is wrong with each row."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: name != first)
    plain = ({name: _plain(row.get(name)) for name in columns} for row in rows)
    return _records(dict.fromkeys(columns, "string"), plain)


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _windows(refresh: Refresh) -> dg.TableMetadataValue:
    columns = {
        "source": "string",
        "before": "int",
        "after": "int",
        "capture": "string",
        "rows": "int",
        "source_rows": "int",
    }
    windows = (
        {"source": name, **asdict(window), "capture": str(window.capture)}
        for name, window in refresh.windows.items()
    )
    return _records(columns, windows)


def _intermediates(refresh: Refresh) -> dg.TableMetadataValue:
    columns = {"table": "string", "action": "string", "reason": "string", "seconds": "float"}
    columns |= dict.fromkeys(("inserted", "deleted", "row_count"), "int")
    done = (
        {"table": name, **{each: getattr(one, each) for each in list(columns)[1:]}}
        for name, one in refresh.intermediates.items()
    )
    return _records(columns, ({**each, "action": str(each["action"])} for each in done))


def _records(
    columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
) -> dg.TableMetadataValue:
    schema = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns.items()])
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows], schema)


def _json(value: Any) -> Any:
    found = getattr(value, "data", value)
    return json.loads(found) if isinstance(found, str) else found
